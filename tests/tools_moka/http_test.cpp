// SPDX-License-Identifier: Apache-2.0
#include "view/http.h"

#include <arpa/inet.h>
#include <gtest/gtest.h>
#include <sys/socket.h>
#include <unistd.h>

#include <thread>

namespace moka::cli {
namespace {

class Client {
 public:
  explicit Client(int port) : socket_(::socket(AF_INET, SOCK_STREAM, 0)) {
    const timeval most{20, 0};
    setsockopt(socket_, SOL_SOCKET, SO_RCVTIMEO, &most, sizeof most);
    sockaddr_in address{};
    address.sin_family = AF_INET;
    address.sin_port = htons(static_cast<uint16_t>(port));
    address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    EXPECT_EQ(::connect(socket_, reinterpret_cast<sockaddr*>(&address), sizeof address), 0);
  }
  ~Client() { ::close(socket_); }
  Client(const Client&) = delete;
  void send(const std::string& text) const { (void)!::send(socket_, text.data(), text.size(), MSG_NOSIGNAL); }
  /// The bytes that arrive until the other side closes or pauses for long.
  std::string receive() const {
    std::string out;
    char block[4096];
    for (ssize_t n = 0; (n = ::recv(socket_, block, sizeof block, 0)) > 0;) out.append(block, static_cast<size_t>(n));
    return out;
  }

 private:
  int socket_;
};

TEST(Http, ClosesIdleConnections) {
  HttpServer server(
      0,
      [](const HttpRequest& r) {
        return HttpResponse{200, "text/plain", "you asked " + r.path};
      },
      std::chrono::milliseconds(500));
  std::thread running([&] { server.run(); });
  const std::string address = server.address(), host = address.substr(7, address.find('/', 7) - 7);
  const int port = std::stoi(host.substr(host.find(':') + 1));
  const std::string request =
      "GET " + address.substr(7 + host.size()) + "api HTTP/1.1\r\nHost: " + host + "\r\nConnection: close\r\n\r\n";
  {
    std::vector<std::unique_ptr<Client>> idle;
    for (int i = 0; i < 64; ++i) idle.push_back(std::make_unique<Client>(port));
    idle[0]->send(request.substr(0, 20));
    for (const auto& client : idle) EXPECT_EQ(client->receive(), "");
    std::this_thread::sleep_for(std::chrono::milliseconds(500));
    const Client client(port);
    client.send(request);
    EXPECT_NE(client.receive().find("you asked api"), std::string::npos);
  }
  server.stop();
  running.join();
}

}  // namespace
}  // namespace moka::cli
