#include "report/serve.h"

#include <arpa/inet.h>
#include <fmt/core.h>
#include <poll.h>
#include <sys/socket.h>
#include <unistd.h>

#include <cstring>

#include "base/error.h"

namespace fairway {
namespace {

constexpr size_t kMostRequest = 8192;
constexpr int kPollMilliseconds = 200, kClientMilliseconds = 2000;

class Socket {
 public:
  explicit Socket(int fd) : fd_(fd) {}
  ~Socket() {
    if (fd_ >= 0) close(fd_);
  }
  Socket(const Socket&) = delete;
  Socket& operator=(const Socket&) = delete;
  int fd() const { return fd_; }

 private:
  int fd_;
};

bool readable(int fd, int milliseconds) {
  pollfd wait{fd, POLLIN, 0};
  return poll(&wait, 1, milliseconds) > 0;
}

uint16_t listen_on(int fd, uint16_t port) {
  const int yes = 1;
  setsockopt(fd, SOL_SOCKET, SO_REUSEADDR, &yes, sizeof yes);
  sockaddr_in address{};
  address.sin_family = AF_INET;
  address.sin_port = htons(port);
  address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  if (fd < 0 || bind(fd, reinterpret_cast<sockaddr*>(&address), sizeof address) != 0 || listen(fd, 16) != 0)
    throw InputError(fmt::format("--port {}: cannot listen on it ({})", port, std::strerror(errno)));
  socklen_t size = sizeof address;
  getsockname(fd, reinterpret_cast<sockaddr*>(&address), &size);
  return ntohs(address.sin_port);
}

// The request's first line, or nothing when the client is slow, silent or too talkative.
std::string read_request(int fd) {
  std::string request;
  while (request.size() < kMostRequest && request.find("\r\n\r\n") == std::string::npos) {
    char piece[1024];
    if (!readable(fd, kClientMilliseconds)) return {};
    const ssize_t got = recv(fd, piece, sizeof piece, 0);
    if (got <= 0) return {};
    request.append(piece, static_cast<size_t>(got));
  }
  return request.substr(0, request.find("\r\n"));
}

void answer(int fd, const char* status, const char* type, const std::string& body) {
  const std::string head = fmt::format(
      "HTTP/1.1 {}\r\nContent-Type: {}\r\nContent-Length: {}\r\nCache-Control: no-store\r\nX-Content-Type-Options: nosniff\r\n"
      "Connection: close\r\n\r\n",
      status, type, body.size());
  const std::string all = head + body;
  for (size_t sent = 0; sent < all.size();) {
    const ssize_t n = send(fd, all.data() + sent, all.size() - sent, MSG_NOSIGNAL);
    if (n <= 0) return;
    sent += static_cast<size_t>(n);
  }
}

void serve_one(int fd, const LivePages& pages) {
  const std::string line = read_request(fd);
  const std::string path = line.starts_with("GET ") ? line.substr(4, line.find(' ', 4) - 4) : "";
  try {
    if (path == "/" || path == "/index.html")
      answer(fd, "200 OK", "text/html; charset=utf-8", pages.page());
    else if (path == "/data.json")
      answer(fd, "200 OK", "application/json", pages.data());
    else if (!line.empty())
      answer(fd, "404 Not Found", "text/plain", "not here\n");
  } catch (const std::exception& error) {  // a run folder in the middle of a change; the next request sees it whole
    answer(fd, "503 Service Unavailable", "text/plain", error.what());
  }
}

}  // namespace

void serve_report(uint16_t port, const LivePages& pages, const std::function<void(uint16_t)>& ready,
                  const std::function<bool()>& stop) {
  const Socket server(socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0));
  ready(listen_on(server.fd(), port));
  while (!stop()) {
    if (!readable(server.fd(), kPollMilliseconds)) continue;
    const Socket client(accept(server.fd(), nullptr, nullptr));
    if (client.fd() >= 0) serve_one(client.fd(), pages);
  }
}

}  // namespace fairway
