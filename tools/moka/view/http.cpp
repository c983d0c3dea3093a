#include "view/http.h"

#include <sys/socket.h>
#include <sys/time.h>

#include <atomic>
#include <boost/asio/ip/tcp.hpp>
#include <boost/beast/core.hpp>
#include <boost/beast/http.hpp>
#include <random>
#include <thread>

#include "io/io_error.h"

namespace moka::cli {

namespace asio = boost::asio;
namespace http = boost::beast::http;
using Tcp = asio::ip::tcp;

namespace {

constexpr uint64_t kMostBody = uint64_t{512} << 20;
constexpr int kMostConnections = 64, kIdleSeconds = 60;

std::string secret() {
  std::random_device random;
  std::string out;
  for (int i = 0; i < 32; ++i) out += "0123456789abcdef"[random() % 16];
  return out;
}

/// Nothing but the page's own text may run, and nothing may be fetched from elsewhere.
constexpr const char* kPolicy =
    "default-src 'none'; script-src 'unsafe-inline'; style-src 'unsafe-inline'; img-src data: blob:; media-src blob:; "
    "connect-src 'self'; base-uri 'none'; form-action 'none'; frame-ancestors 'none'";

}  // namespace

struct HttpServer::Impl {
  asio::io_context context;
  Tcp::acceptor acceptor{context};
  Handler handler;
  std::string prefix, address, host, local_host;
  std::atomic<int> connections{0};
  std::atomic<bool> stopped{false};

  HttpResponse answer(const http::request<http::string_body>& request) const {
    const std::string_view name(request[http::field::host].data(), request[http::field::host].size());
    if (name != host && name != local_host) return {403, "text/plain", "unknown host\n"};
    const auto origin = request.find(http::field::origin);
    if (origin != request.end() && origin->value() != "http://" + host && origin->value() != "http://" + local_host)
      return {403, "text/plain", "unknown origin\n"};
    std::string_view target(request.target().data(), request.target().size());
    target = target.substr(0, target.find('?'));
    if (!target.starts_with(prefix)) return {404, "text/plain", "not found\n"};
    target.remove_prefix(prefix.size());
    if (request.method() != http::verb::get && request.method() != http::verb::post)
      return {405, "text/plain", "expected GET or POST\n"};
    return handler({std::string(request.method_string()), std::string(target), request.body()});
  }

  void serve(Tcp::socket socket) const {
    boost::beast::flat_buffer buffer;
    boost::system::error_code error;
    for (bool is_open = true; is_open && !stopped;) {
      http::request_parser<http::string_body> parser;
      parser.body_limit(kMostBody);
      http::read(socket, buffer, parser, error);
      if (error) break;
      const auto& request = parser.get();
      HttpResponse made = answer(request);
      http::response<http::string_body> response(static_cast<http::status>(made.status), request.version());
      response.set(http::field::content_type, made.type + "; charset=utf-8");
      response.set(http::field::cache_control, "no-store");
      response.set("Content-Security-Policy", kPolicy);
      response.set("X-Content-Type-Options", "nosniff");
      response.set("Referrer-Policy", "no-referrer");
      response.keep_alive(request.keep_alive());
      is_open = request.keep_alive();
      response.body() = std::move(made.body);
      response.prepare_payload();
      http::write(socket, response, error);
      if (error) break;
    }
    socket.shutdown(Tcp::socket::shutdown_both, error);
  }
};

HttpServer::HttpServer(uint16_t port, Handler handler) : impl_(std::make_shared<Impl>()) {
  impl_->handler = std::move(handler);
  boost::system::error_code error;
  const Tcp::endpoint end(asio::ip::address_v4::loopback(), port);
  impl_->acceptor.open(end.protocol(), error);
  if (!error) impl_->acceptor.set_option(Tcp::acceptor::reuse_address(true), error);
  if (!error) impl_->acceptor.bind(end, error);
  if (!error) impl_->acceptor.listen(kMostConnections, error);
  if (error) throw io::IoError("cannot listen on 127.0.0.1:" + std::to_string(port) + ": " + error.message());
  const std::string number = std::to_string(impl_->acceptor.local_endpoint().port());
  impl_->host = "127.0.0.1:" + number;
  impl_->local_host = "localhost:" + number;
  impl_->prefix = "/" + secret() + "/";
  impl_->address = "http://" + impl_->host + impl_->prefix;
}

HttpServer::~HttpServer() { stop(); }

const std::string& HttpServer::address() const { return impl_->address; }

void HttpServer::run() {
  while (!impl_->stopped) {
    Tcp::socket socket(impl_->context);
    boost::system::error_code error;
    impl_->acceptor.accept(socket, error);
    if (impl_->stopped) return;
    if (error || impl_->connections >= kMostConnections) continue;
    const timeval idle{kIdleSeconds, 0};
    setsockopt(socket.native_handle(), SOL_SOCKET, SO_RCVTIMEO, &idle, sizeof idle);
    setsockopt(socket.native_handle(), SOL_SOCKET, SO_SNDTIMEO, &idle, sizeof idle);
    ++impl_->connections;
    std::thread([impl = impl_, socket = std::move(socket)]() mutable {
      impl->serve(std::move(socket));
      --impl->connections;
    }).detach();
  }
}

void HttpServer::stop() {
  if (impl_->stopped.exchange(true)) return;
  // Wakes `accept`.
  shutdown(impl_->acceptor.native_handle(), SHUT_RDWR);
}

}  // namespace moka::cli
