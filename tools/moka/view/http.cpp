// SPDX-License-Identifier: Apache-2.0
#include "view/http.h"

#include <poll.h>
#include <sys/socket.h>

#include <atomic>
#include <boost/asio/ip/tcp.hpp>
#include <boost/beast/core.hpp>
#include <boost/beast/http.hpp>
#include <cerrno>
#include <random>
#include <thread>

#include "io/io_error.h"

namespace moka::cli {

namespace asio = boost::asio;
namespace http = boost::beast::http;
using Tcp = asio::ip::tcp;

namespace {

constexpr uint64_t kMostBody = uint64_t{512} << 20;
constexpr int kMostConnections = 64;

/// A stream for blocking calls that fail when the socket is not ready in time.
class TimedStream {
 public:
  TimedStream(Tcp::socket& socket, std::chrono::milliseconds most) : socket_(socket), most_(most) {}
  template <class Buffers>
  size_t read_some(const Buffers& buffers, boost::system::error_code& error) {
    return when_ready(POLLIN, error, [&] { return socket_.read_some(buffers, error); });
  }
  template <class Buffers>
  size_t write_some(const Buffers& buffers, boost::system::error_code& error) {
    return when_ready(POLLOUT, error, [&] { return socket_.write_some(buffers, error); });
  }
  template <class Buffers>
  size_t read_some(const Buffers& buffers) {
    return or_throw([&](auto& error) { return read_some(buffers, error); });
  }
  template <class Buffers>
  size_t write_some(const Buffers& buffers) {
    return or_throw([&](auto& error) { return write_some(buffers, error); });
  }

 private:
  template <class Act>
  size_t when_ready(short event, boost::system::error_code& error, const Act& act) {
    for (;;) {
      pollfd ready{socket_.native_handle(), event, 0};
      const int n = poll(&ready, 1, static_cast<int>(most_.count()));
      if (n < 0 && errno == EINTR) continue;
      if (n <= 0) {
        error = n < 0 ? boost::system::error_code(errno, boost::system::system_category()) : asio::error::timed_out;
        return 0;
      }
      const size_t done = act();
      if (error != asio::error::would_block) return done;
    }
  }
  template <class Act>
  static size_t or_throw(const Act& act) {
    boost::system::error_code error;
    const size_t done = act(error);
    if (error) throw boost::system::system_error(error);
    return done;
  }
  Tcp::socket& socket_;
  std::chrono::milliseconds most_;
};

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
  std::chrono::milliseconds idle{};
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
    socket.non_blocking(true, error);
    TimedStream stream(socket, idle);
    for (bool is_open = true; is_open && !stopped;) {
      http::request_parser<http::string_body> parser;
      parser.body_limit(kMostBody);
      http::read(stream, buffer, parser, error);
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
      http::write(stream, response, error);
      if (error) break;
    }
    socket.shutdown(Tcp::socket::shutdown_both, error);
  }
};

HttpServer::HttpServer(uint16_t port, Handler handler, std::chrono::milliseconds idle)
    : impl_(std::make_shared<Impl>()) {
  impl_->handler = std::move(handler);
  impl_->idle = idle;
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
