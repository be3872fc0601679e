// A small HTTP server on this machine's own address, with the faults that mirrors have. The first part of a path says how the
// rest is served: /ok, /whole (ranges are ignored), /gone (404), /wrong (other bytes), /short (at most 1000 bytes an answer),
// /stall (1000 bytes, then nothing until released), /loop (redirects to itself), /hop (redirects to /ok), /long (a byte too
// many), /elsewhere (another range than was asked for).
#pragma once

#include <arpa/inet.h>
#include <netinet/in.h>
#include <sys/socket.h>
#include <unistd.h>

#include <atomic>
#include <cstdlib>
#include <map>
#include <mutex>
#include <string>
#include <thread>
#include <vector>

class LoopbackServer {
 public:
  explicit LoopbackServer(std::map<std::string, std::string> files) : files_(std::move(files)) {
    ::setenv("no_proxy", "127.0.0.1", 1);
    listener_ = ::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    sockaddr_in address{.sin_family = AF_INET, .sin_port = 0, .sin_addr = {htonl(INADDR_LOOPBACK)}, .sin_zero = {}};
    socklen_t length = sizeof address;
    if (::bind(listener_, reinterpret_cast<sockaddr*>(&address), length) != 0 || ::listen(listener_, 16) != 0) std::abort();
    ::getsockname(listener_, reinterpret_cast<sockaddr*>(&address), &length);
    port_ = ntohs(address.sin_port);
    acceptor_ = std::thread([this] { accept_all(); });
  }
  ~LoopbackServer() {
    ending_ = true;
    ::shutdown(listener_, SHUT_RDWR);
    acceptor_.join();
    for (std::thread& thread : served_) thread.join();
    ::close(listener_);
  }

  std::string address(const std::string& way) const { return "http://127.0.0.1:" + std::to_string(port_) + "/" + way + "/"; }
  void release() { released_ = true; }      // /stall goes on, now and later
  std::vector<std::string> asked() const {  // "PATH" or "PATH from N", in order
    const std::lock_guard lock(mutex_);
    return asked_;
  }

 private:
  void accept_all() {
    for (int fd = 0; (fd = ::accept4(listener_, nullptr, nullptr, SOCK_CLOEXEC)) >= 0;)
      served_.emplace_back([this, fd] {
        serve(fd);
        ::close(fd);
      });
  }

  static void send_all(int fd, const std::string& bytes) {
    for (size_t done = 0; done < bytes.size();) {
      const ssize_t put = ::send(fd, bytes.data() + done, bytes.size() - done, MSG_NOSIGNAL);
      if (put <= 0) return;
      done += static_cast<size_t>(put);
    }
  }

  // Until released, or the other side goes away.
  void hold(int fd) const {
    char byte = 0;
    while (!released_ && !ending_ && !(::recv(fd, &byte, 1, MSG_DONTWAIT) == 0)) ::usleep(2000);
  }

  void serve(int fd) {
    std::string request;
    for (char piece[2048]; request.find("\r\n\r\n") == std::string::npos;) {
      const ssize_t got = ::recv(fd, piece, sizeof piece, 0);
      if (got <= 0) return;
      request.append(piece, static_cast<size_t>(got));
    }
    const size_t start = request.find('/') + 1, cut = request.find('/', start), end = request.find(' ', start);
    const std::string way = request.substr(start, cut - start), name = request.substr(cut + 1, end - cut - 1);
    const size_t range = request.find("Range: bytes=");
    const size_t from = range == std::string::npos ? 0 : std::strtoull(request.c_str() + range + 13, nullptr, 10);
    {
      const std::lock_guard lock(mutex_);
      asked_.push_back(way + "/" + name + (range == std::string::npos ? "" : " from " + std::to_string(from)));
    }
    const auto status = [&](const std::string& line, const std::string& headers = "") {
      send_all(fd, "HTTP/1.1 " + line + "\r\nConnection: close\r\n" + headers + "Content-Length: 0\r\n\r\n");
    };
    if (way == "loop" || way == "hop")
      return status("302 Found", "Location: /" + std::string(way == "hop" ? "ok" : way) + "/" + name + "\r\n");
    const auto file = files_.find(name);
    if (way == "gone" || file == files_.end()) return status("404 Not Found");
    std::string bytes = file->second;
    if (way == "wrong") bytes[bytes.size() / 2] = static_cast<char>(bytes[bytes.size() / 2] ^ 1);
    if (way == "long") bytes += "x";
    if (from >= bytes.size() && range != std::string::npos) return status("416 Range Not Satisfiable");
    const bool part = range != std::string::npos && way != "whole";
    const std::string body = part ? bytes.substr(from) : bytes;
    const size_t told = way == "elsewhere" ? from + 1 : from;
    std::string head = part ? "HTTP/1.1 206 Partial Content\r\nContent-Range: bytes " + std::to_string(told) + "-" +
                                  std::to_string(bytes.size() - 1) + "/" + std::to_string(bytes.size()) + "\r\n"
                            : "HTTP/1.1 200 OK\r\n";
    head += "Connection: close\r\nContent-Length: " + std::to_string(body.size()) + "\r\n\r\n";
    if (way == "short") return send_all(fd, head + body.substr(0, 1000));
    if (way != "stall" || released_) return send_all(fd, head + body);
    send_all(fd, head + body.substr(0, 1000));
    hold(fd);
    if (released_) send_all(fd, body.substr(1000));
  }

  std::map<std::string, std::string> files_;
  int listener_ = -1, port_ = 0;
  std::atomic<bool> ending_{false}, released_{false};
  std::thread acceptor_;
  std::vector<std::thread> served_;  // by the acceptor alone until it has ended
  mutable std::mutex mutex_;
  std::vector<std::string> asked_;
};
