#include "tools/top/metrics_server.hpp"

#include <fmt/format.h>

#include <boost/asio/io_context.hpp>
#include <boost/asio/ip/tcp.hpp>
#include <boost/asio/steady_timer.hpp>
#include <boost/beast/core.hpp>
#include <boost/beast/http.hpp>

#include <algorithm>
#include <array>
#include <optional>
#include <string_view>
#include <utility>

#include "tools/base/now.hpp"

namespace fairlead::tools {
namespace {

namespace asio = boost::asio;
namespace beast = boost::beast;
namespace http = beast::http;
using Failure = boost::system::error_code;

using Answer = http::response<http::string_body>;

/// Returns the host in a Host header, without the port.
std::string_view host_name_of(std::string_view host) {
  const std::size_t colon = host.rfind(':');
  const bool has_port = colon != std::string_view::npos && host.find(']', colon) == std::string_view::npos;
  return has_port ? host.substr(0, colon) : host;
}

bool is_own_name(std::string_view host) {
  constexpr std::array<std::string_view, 3> kOwn{"localhost", "127.0.0.1", "[::1]"};
  return std::ranges::find(kOwn, host_name_of(host)) != kOwn.end();
}

Answer answer_of(http::status status, std::string text, const char* type = "text/plain; charset=utf-8") {
  Answer answer(status, 11);
  answer.set(http::field::content_type, type);
  answer.keep_alive(false);
  answer.body() = std::move(text);
  return answer;
}

}  // namespace

struct MetricsServer::State {
  State(Look its_look, Duration its_patience)
      : look(std::move(its_look)), patience(its_patience), listener(loop), pause(loop) {}

  void accept();
  Answer answer(const http::request<http::empty_body>& request);
  /// Returns the metrics, at most kFreshFor old.
  const Result<std::string>& metrics();

  Look look;
  Duration patience;
  std::size_t clients = 0;  // outlives the loop, whose end closes the last clients
  asio::io_context loop{1};
  asio::ip::tcp::acceptor listener;
  asio::steady_timer pause;
  Instant looked_at{};
  std::optional<Result<std::string>> seen;
};

namespace {

/// One connection: a request and its answer.
class Client : public std::enable_shared_from_this<Client> {
 public:
  using Handler = std::function<Answer(const http::request<http::empty_body>&)>;

  Client(asio::ip::tcp::socket socket, Duration patience, Handler handler, std::size_t& clients)
      : stream_(std::move(socket)), patience_(patience), handler_(std::move(handler)), clients_(clients) {
    ++clients_;
  }
  ~Client() { --clients_; }
  Client(const Client&) = delete;
  Client& operator=(const Client&) = delete;

  void start() {
    parser_.header_limit(MetricsServer::kRequestMost);
    stream_.expires_after(patience_);
    http::async_read_header(stream_, buffer_, parser_, [self = shared_from_this()](Failure failed, std::size_t) {
      if (!failed) self->respond();
    });
  }

 private:
  void respond() {
    answer_ = handler_(parser_.get());
    answer_.prepare_payload();
    if (parser_.get().method() == http::verb::head) answer_.body().clear();
    stream_.expires_after(patience_);
    http::async_write(stream_, answer_, [self = shared_from_this()](Failure, std::size_t) {
      Failure ignored;
      self->stream_.socket().shutdown(asio::ip::tcp::socket::shutdown_send, ignored);
    });
  }

  beast::tcp_stream stream_;
  Duration patience_;
  beast::flat_buffer buffer_{MetricsServer::kRequestMost};
  http::request_parser<http::empty_body> parser_;
  Handler handler_;
  Answer answer_;
  std::size_t& clients_;
};

}  // namespace

void MetricsServer::State::accept() {
  listener.async_accept([this](Failure failed, asio::ip::tcp::socket socket) {
    if (!failed && clients < kClientsMax)
      std::make_shared<Client>(
          std::move(socket), patience, [this](const auto& request) { return answer(request); }, clients)
          ->start();
    if (!failed) return accept();
    // There may be no free descriptor at the moment.
    pause.expires_after(std::chrono::milliseconds(100));
    pause.async_wait([this](Failure canceled) {
      if (!canceled) accept();
    });
  });
}

Answer MetricsServer::State::answer(const http::request<http::empty_body>& request) {
  const auto text = [](beast::string_view view) { return std::string_view(view.data(), view.size()); };
  if (!is_own_name(text(request[http::field::host])))
    return answer_of(http::status::forbidden, "ask for localhost: this is for programs of this host\n");
  if (request.method() != http::verb::get && request.method() != http::verb::head)
    return answer_of(http::status::method_not_allowed, "GET /metrics\n");
  if (text(request.target()) != "/metrics") return answer_of(http::status::not_found, "GET /metrics\n");
  const auto& now_seen = metrics();
  if (!now_seen) return answer_of(http::status::service_unavailable, now_seen.error().message + "\n");
  return answer_of(http::status::ok, *now_seen, "application/openmetrics-text; version=1.0.0; charset=utf-8");
}

const Result<std::string>& MetricsServer::State::metrics() {
  if (!seen || now() - looked_at >= kFreshFor) {
    seen = look();
    looked_at = now();
  }
  return *seen;
}

Result<MetricsServer> MetricsServer::listen(std::uint16_t port, Look look, Duration patience) {
  auto state = std::make_unique<State>(std::move(look), patience);
  const asio::ip::tcp::endpoint place(asio::ip::address_v4::loopback(), port);
  Failure failed;
  state->listener.open(place.protocol(), failed);
  if (!failed) state->listener.set_option(asio::ip::tcp::acceptor::reuse_address(true), failed);
  if (!failed) state->listener.bind(place, failed);
  if (!failed) state->listener.listen(asio::socket_base::max_listen_connections, failed);
  if (failed) {
    return std::unexpected(Error{Status::system, failed.value(),
                                 fmt::format("cannot listen at 127.0.0.1:{}: {}", port, failed.message())});
  }
  state->accept();
  return MetricsServer(std::move(state));
}

MetricsServer::MetricsServer(std::unique_ptr<State> state) : state_(std::move(state)) {}
MetricsServer::MetricsServer(MetricsServer&&) noexcept = default;
MetricsServer::~MetricsServer() = default;

std::uint16_t MetricsServer::port() const {
  Failure ignored;
  return state_->listener.local_endpoint(ignored).port();
}

void MetricsServer::serve(Duration time) {
  state_->loop.run_for(time);
}

}  // namespace fairlead::tools
