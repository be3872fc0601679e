// The live page: what it answers, and that it outlives odd clients.
#include "report/serve.h"

#include <arpa/inet.h>
#include <gtest/gtest.h>
#include <sys/socket.h>
#include <unistd.h>

#include <atomic>
#include <future>
#include <thread>

#include "base/error.h"

namespace fairway {
namespace {

std::string ask(uint16_t port, const std::string& request) {
  const int fd = socket(AF_INET, SOCK_STREAM, 0);
  sockaddr_in address{};
  address.sin_family = AF_INET;
  address.sin_port = htons(port);
  address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  EXPECT_EQ(connect(fd, reinterpret_cast<sockaddr*>(&address), sizeof address), 0);
  send(fd, request.data(), request.size(), MSG_NOSIGNAL);
  shutdown(fd, SHUT_WR);
  std::string reply;
  char piece[4096];
  for (ssize_t n = 0; (n = recv(fd, piece, sizeof piece, 0)) > 0;) reply.append(piece, static_cast<size_t>(n));
  close(fd);
  return reply;
}

TEST(Serve, AnswersPageDataAndNothingElse) {
  std::atomic<bool> stop = false;
  std::promise<uint16_t> ready;
  int asked = 0;
  const LivePages pages{.page = [] { return std::string("<html>"); },
                        .data =
                            [&asked] {
                              if (++asked == 2) throw InputError("in the middle of a change");
                              return std::to_string(asked);
                            }};
  std::thread server([&] {
    serve_report(
        0, pages, [&](uint16_t port) { ready.set_value(port); }, [&] { return stop.load(); });
  });
  const uint16_t port = ready.get_future().get();
  EXPECT_NE(ask(port, "GET / HTTP/1.1\r\n\r\n").find("<html>"), std::string::npos);
  EXPECT_TRUE(ask(port, "GET /data.json HTTP/1.1\r\n\r\n").ends_with("\r\n\r\n1"));
  EXPECT_TRUE(ask(port, "GET /data.json HTTP/1.1\r\n\r\n").starts_with("HTTP/1.1 503"));
  EXPECT_TRUE(ask(port, "GET /data.json HTTP/1.1\r\n\r\n").ends_with("\r\n\r\n3"));
  EXPECT_TRUE(ask(port, "GET /../recipe.toml HTTP/1.1\r\n\r\n").starts_with("HTTP/1.1 404"));
  EXPECT_TRUE(ask(port, "POST / HTTP/1.1\r\n\r\n").starts_with("HTTP/1.1 404"));
  EXPECT_EQ(ask(port, "half a requ"), "");
  EXPECT_TRUE(ask(port, std::string(100000, 'x')).size() < 300);
  EXPECT_NE(ask(port, "GET / HTTP/1.0\r\n\r\n").find("<html>"), std::string::npos);
  stop = true;
  server.join();
}

}  // namespace
}  // namespace fairway
