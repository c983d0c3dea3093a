// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <chrono>
#include <cstdint>
#include <functional>
#include <memory>
#include <string>

namespace moka::cli {

struct HttpRequest {
  std::string method, path, body;  ///< path: behind the secret, without a query: "api/weight"
};

struct HttpResponse {
  unsigned status = 200;
  std::string type = "application/json", body;
};

/// A server for one user on this machine. It listens on 127.0.0.1, and answers only requests whose address begins with
/// a random secret and whose Host and Origin are its own: other pages in the browser cannot use it.
class HttpServer {
 public:
  using Handler = std::function<HttpResponse(const HttpRequest&)>;

  /// Listens. Port 0: a free one. `handler` is called on many threads. Throws IoError.
  /// Closes connections that are idle for this long.
  HttpServer(uint16_t port, Handler handler, std::chrono::milliseconds idle = std::chrono::minutes(1));
  ~HttpServer();
  HttpServer(const HttpServer&) = delete;
  HttpServer& operator=(const HttpServer&) = delete;

  /// "http://127.0.0.1:40123/3f.../".
  const std::string& address() const;
  /// Answers until `stop`.
  void run();
  void stop();

 private:
  struct Impl;
  std::shared_ptr<Impl> impl_;
};

}  // namespace moka::cli
