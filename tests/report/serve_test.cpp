// The live page: what it answers, and that it outlives odd clients.
#include "report/serve.h"

#include <arpa/inet.h>
#include <gtest/gtest.h>
#include <sys/socket.h>
#include <unistd.h>

#include <atomic>
#include <chrono>
#include <future>
#include <thread>
#include <vector>

#include "base/error.h"

namespace fairway {
namespace {

int connected(uint16_t port) {
  const int fd = socket(AF_INET, SOCK_STREAM, 0);
  sockaddr_in address{};
  address.sin_family = AF_INET;
  address.sin_port = htons(port);
  address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  EXPECT_EQ(connect(fd, reinterpret_cast<sockaddr*>(&address), sizeof address), 0);
  return fd;
}

std::string ask(uint16_t port, const std::string& request) {
  const int fd = connected(port);
  send(fd, request.data(), request.size(), MSG_NOSIGNAL);
  shutdown(fd, SHUT_WR);
  std::string reply;
  char piece[4096];
  for (ssize_t n = 0; (n = recv(fd, piece, sizeof piece, 0)) > 0;) reply.append(piece, static_cast<size_t>(n));
  close(fd);
  return reply;
}

class Server {
 public:
  explicit Server(LivePages pages) : pages_(std::move(pages)) {
    std::promise<uint16_t> ready;
    thread_ = std::thread([this, &ready] {
      serve_report(
          0, pages_, [&](uint16_t port) { ready.set_value(port); }, [this] { return stop_.load(); });
    });
    port_ = ready.get_future().get();
  }
  ~Server() {
    stop_ = true;
    thread_.join();
  }
  uint16_t port() const { return port_; }

 private:
  LivePages pages_;
  std::atomic<bool> stop_ = false;
  std::thread thread_;
  uint16_t port_ = 0;
};

LivePages two_words() {
  return {.page = [](const std::string&) { return std::string("<html>"); },
          .data = [](const std::string&) { return std::string("data"); }};
}

// A client that never ends its request is left after its time, however often it sends a byte, and others do not wait for it.
TEST(Serve, SlowClientsAreLeftAndHoldUpNobody) {
  const Server server(two_words());
  std::vector<int> slow;
  for (int i = 0; i < 20; ++i) slow.push_back(connected(server.port()));
  std::atomic<bool> left = false;
  std::thread trickle([&] {
    constexpr int kMostBytes = 2000;  // at ten a second; less than a request may have
    for (int i = 0; i < kMostBytes && !left; ++i) {
      left = send(slow[0], "x", 1, MSG_NOSIGNAL) < 0;
      std::this_thread::sleep_for(std::chrono::milliseconds(100));
    }
  });
  EXPECT_TRUE(ask(server.port(), "GET /data.json HTTP/1.1\r\n\r\n").ends_with("data"));
  EXPECT_FALSE(left) << "it was answered while the slow ones were there";
  trickle.join();
  EXPECT_TRUE(left);
  for (const int fd : slow) close(fd);
}

TEST(Serve, ManyClientsAreAnswered) {
  const Server server(two_words());
  std::vector<std::future<std::string>> replies;
  for (int i = 0; i < 100; ++i)
    replies.push_back(std::async(std::launch::async, [&] { return ask(server.port(), "GET / HTTP/1.1\r\n\r\n"); }));
  for (auto& reply : replies) EXPECT_TRUE(reply.get().ends_with("<html>"));
}

// What stands behind "?" is the pages' own matter; a run that is not there is no server's failure.
TEST(Serve, QueriesReachThePages) {
  const Server server(
      {.page = [](const std::string& query) { return query == "none" ? std::optional<std::string>() : "[" + query + "]"; },
       .data = [](const std::string& query) { return "{" + query + "}"; }});
  EXPECT_TRUE(ask(server.port(), "GET /?run=a%2Fb HTTP/1.1\r\n\r\n").ends_with("[run=a%2Fb]"));
  EXPECT_TRUE(ask(server.port(), "GET /data.json?x HTTP/1.1\r\n\r\n").ends_with("{x}"));
  EXPECT_TRUE(ask(server.port(), "GET /? HTTP/1.1\r\n\r\n").ends_with("[]"));
  EXPECT_TRUE(ask(server.port(), "GET /?none HTTP/1.1\r\n\r\n").starts_with("HTTP/1.1 404"));
  EXPECT_TRUE(ask(server.port(), "GET /other?x HTTP/1.1\r\n\r\n").starts_with("HTTP/1.1 404"));
}

TEST(Serve, OnlyItsOwnNameIsAnswered) {
  const Server server(two_words());
  const std::string own = std::to_string(server.port());
  for (const std::string& host : {"127.0.0.1:" + own, "localhost:" + own, std::string("LOCALHOST"), "127.0.0.1:" + own + "  "})
    EXPECT_TRUE(ask(server.port(), "GET / HTTP/1.1\r\nHost: " + host + "\r\n\r\n").ends_with("<html>")) << host;
  for (const std::string host : {"evil.example", "127.0.0.1.evil.example", "localhost:1", ""})
    EXPECT_TRUE(ask(server.port(), "GET / HTTP/1.1\r\nhost:" + host + "\r\n\r\n").starts_with("HTTP/1.1 421")) << host;
}

TEST(Serve, ThePageMayLoadNothingFromElsewhere) {
  const Server server(two_words());
  const std::string reply = ask(server.port(), "GET / HTTP/1.1\r\n\r\n");
  EXPECT_NE(reply.find("Content-Security-Policy: default-src 'none'"), std::string::npos) << reply;
  EXPECT_EQ(reply.find("http://"), std::string::npos);
}

TEST(Serve, APageThatIsTooLargeIsRefused) {
  const Server server({.page = [](const std::string&) { return std::string((size_t{64} << 20) + 1, 'x'); },
                       .data = [](const std::string&) { return std::string(); }});
  const std::string reply = ask(server.port(), "GET / HTTP/1.1\r\n\r\n");
  EXPECT_TRUE(reply.starts_with("HTTP/1.1 503"));
  EXPECT_NE(reply.find("67108865 bytes; at most 67108864"), std::string::npos);
}

TEST(Serve, AnswersPageDataAndNothingElse) {
  int asked = 0;
  const LivePages pages{.page = [](const std::string&) { return std::string("<html>"); },
                        .data =
                            [&asked](const std::string&) {
                              if (++asked == 2) throw InputError("in the middle of a change");
                              return std::to_string(asked);
                            }};
  const Server server(pages);
  const uint16_t port = server.port();
  EXPECT_NE(ask(port, "GET / HTTP/1.1\r\n\r\n").find("<html>"), std::string::npos);
  EXPECT_TRUE(ask(port, "GET /data.json HTTP/1.1\r\n\r\n").ends_with("\r\n\r\n1"));
  EXPECT_TRUE(ask(port, "GET /data.json HTTP/1.1\r\n\r\n").starts_with("HTTP/1.1 503"));
  EXPECT_TRUE(ask(port, "GET /data.json HTTP/1.1\r\n\r\n").ends_with("\r\n\r\n3"));
  EXPECT_TRUE(ask(port, "GET /../recipe.toml HTTP/1.1\r\n\r\n").starts_with("HTTP/1.1 404"));
  EXPECT_TRUE(ask(port, "POST / HTTP/1.1\r\n\r\n").starts_with("HTTP/1.1 404"));
  EXPECT_EQ(ask(port, "half a requ"), "");
  EXPECT_TRUE(ask(port, std::string(100000, 'x')).size() < 300);
  EXPECT_NE(ask(port, "GET / HTTP/1.0\r\n\r\n").find("<html>"), std::string::npos);
}

}  // namespace
}  // namespace fairway
