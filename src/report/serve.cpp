#include "report/serve.h"

#include <arpa/inet.h>
#include <fmt/core.h>
#include <poll.h>
#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <cctype>
#include <cerrno>
#include <cstring>
#include <utility>
#include <vector>

#include "base/clock.h"
#include "base/error.h"

namespace fairway {
namespace {

constexpr size_t kMostRequest = 8192, kMostClients = 64, kMostPage = size_t{64} << 20;
constexpr int kPollMilliseconds = 200;
constexpr double kClientSeconds = 5;  // from a client's arrival until it has its answer

// The page is one file: its own scripts and styles, and data from here.
constexpr const char* kPolicy =
    "default-src 'none'; script-src 'unsafe-inline'; style-src 'unsafe-inline'; img-src data:; connect-src 'self'; base-uri "
    "'none'; form-action 'none'; frame-ancestors 'none'";

class Socket {
 public:
  explicit Socket(int fd) : fd_(fd) {}
  ~Socket() {
    if (fd_ >= 0) close(fd_);
  }
  Socket(Socket&& other) noexcept : fd_(std::exchange(other.fd_, -1)) {}
  Socket& operator=(Socket&& other) noexcept {
    std::swap(fd_, other.fd_);
    return *this;
  }
  int fd() const { return fd_; }

 private:
  int fd_;
};

uint16_t listen_on(int fd, uint16_t port) {
  const int yes = 1;
  setsockopt(fd, SOL_SOCKET, SO_REUSEADDR, &yes, sizeof yes);
  sockaddr_in address{};
  address.sin_family = AF_INET;
  address.sin_port = htons(port);
  address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  if (fd < 0 || bind(fd, reinterpret_cast<sockaddr*>(&address), sizeof address) != 0 || listen(fd, 128) != 0)
    throw InputError(fmt::format("--port {}: cannot listen on it ({})", port, std::strerror(errno)));
  socklen_t size = sizeof address;
  getsockname(fd, reinterpret_cast<sockaddr*>(&address), &size);
  return ntohs(address.sin_port);
}

std::string answer(const char* status, const char* type, const std::string& body) {
  return fmt::format(
             "HTTP/1.1 {}\r\nContent-Type: {}\r\nContent-Length: {}\r\nCache-Control: no-store\r\n"
             "X-Content-Type-Options: nosniff\r\nContent-Security-Policy: {}\r\nConnection: close\r\n\r\n",
             status, type, body.size(), kPolicy) +
         body;
}

// A page elsewhere may give its own name this machine's address; then a browser here would let it read what we answer. Clients
// that are no browsers may leave the name out.
bool is_own_host(const std::string& request, uint16_t port) {
  std::string lower = request;
  for (char& c : lower) c = static_cast<char>(std::tolower(static_cast<unsigned char>(c)));
  const size_t at = lower.find("\r\nhost:");
  if (at == std::string::npos) return true;
  const size_t begin = lower.find_first_not_of(" \t", at + 7), end = lower.find("\r\n", at + 2);
  const std::string host = begin < end ? lower.substr(begin, lower.find_last_not_of(" \t", end - 1) + 1 - begin) : "";
  for (const char* name : {"127.0.0.1", "localhost"})
    if (host == name || host == fmt::format("{}:{}", name, port)) return true;
  return false;
}

std::string reply_to(const std::string& request, uint16_t port, const LivePages& pages) {
  const std::string line = request.substr(0, request.find("\r\n"));
  const std::string target = line.starts_with("GET ") ? line.substr(4, line.find(' ', 4) - 4) : "";
  const size_t mark = std::min(target.find('?'), target.size());
  const std::string path = target.substr(0, mark), query = target.substr(std::min(mark + 1, target.size()));
  if (!is_own_host(request, port)) return answer("421 Misdirected Request", "text/plain", "this is not that host\n");
  try {
    const bool page = path == "/" || path == "/index.html";
    if (!page && path != "/data.json") return answer("404 Not Found", "text/plain", "not here\n");
    const std::optional<std::string> found = page ? pages.page(query) : pages.data(query);
    if (!found) return answer("404 Not Found", "text/plain", "no such run\n");
    const std::string& body = *found;
    if (body.size() > kMostPage)
      throw InputError(fmt::format("the page has {} bytes; at most {} are served. `fairway report` writes it to a file\n",
                                   body.size(), kMostPage));
    return answer("200 OK", page ? "text/html; charset=utf-8" : "application/json", body);
  } catch (const std::exception& error) {  // a run folder in the middle of a change; the next request sees it whole
    return answer("503 Service Unavailable", "text/plain", error.what());
  }
}

class Client {
 public:
  explicit Client(Socket socket) : socket_(std::move(socket)), deadline_(seconds_now() + kClientSeconds) {}

  pollfd wish() const { return {socket_.fd(), static_cast<short>(reply_.empty() ? POLLIN : POLLOUT), 0}; }
  bool late() const { return seconds_now() > deadline_; }

  // Goes on without waiting; false when the client has its answer, is gone or talks too much.
  bool go_on(uint16_t port, const LivePages& pages) {
    if (reply_.empty()) {
      char piece[1024];
      const ssize_t got = recv(socket_.fd(), piece, sizeof piece, 0);
      if (got <= 0) return false;
      request_.append(piece, static_cast<size_t>(got));
      if (request_.find("\r\n\r\n") == std::string::npos) return request_.size() < kMostRequest;
      reply_ = reply_to(request_, port, pages);
    }
    const ssize_t put = send(socket_.fd(), reply_.data() + sent_, reply_.size() - sent_, MSG_NOSIGNAL | MSG_DONTWAIT);
    if (put < 0) return errno == EAGAIN;
    sent_ += static_cast<size_t>(put);
    return sent_ < reply_.size();
  }

 private:
  Socket socket_;
  double deadline_;
  std::string request_, reply_;
  size_t sent_ = 0;
};

}  // namespace

void serve_report(uint16_t port, const LivePages& pages, const std::function<void(uint16_t)>& ready,
                  const std::function<bool()>& stop) {
  const Socket server(socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0));
  const uint16_t own = listen_on(server.fd(), port);
  ready(own);
  std::vector<Client> clients;
  while (!stop()) {
    std::vector<pollfd> wishes;
    wishes.reserve(clients.size() + 1);
    for (const Client& client : clients) wishes.push_back(client.wish());
    if (clients.size() < kMostClients) wishes.push_back({server.fd(), POLLIN, 0});  // the others wait to be accepted
    if (poll(wishes.data(), wishes.size(), kPollMilliseconds) < 0) continue;
    std::vector<Client> left;
    for (size_t i = 0; i < clients.size(); ++i)
      if ((wishes[i].revents == 0 || clients[i].go_on(own, pages)) && !clients[i].late()) left.push_back(std::move(clients[i]));
    clients = std::move(left);
    if (wishes.back().fd != server.fd() || wishes.back().revents == 0) continue;
    Socket socket(accept4(server.fd(), nullptr, nullptr, SOCK_CLOEXEC | SOCK_NONBLOCK));
    if (socket.fd() >= 0) clients.emplace_back(std::move(socket));
  }
}

}  // namespace fairway
