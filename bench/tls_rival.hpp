#pragma once
// One end of a TLS connection over TCP on the loopback, by OpenSSL, with a pre-shared key and AES-128-GCM. With kTLS
// the kernel encrypts sent data, if it can.

#include <arpa/inet.h>
#include <fcntl.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <openssl/ssl.h>
#include <sys/socket.h>
#include <unistd.h>

#include <cstdlib>
#include <cstring>
#include <memory>

namespace fairlead::bench {

class TlsRival {
 public:
  /// The side with `listener` accepts a connection, the other one connects to `port`.
  TlsRival(int listener, std::uint16_t port, bool wants_ktls) {
    const bool is_server = listener >= 0;
    socket_ = is_server ? ::accept(listener, nullptr, nullptr) : connect(port);
    constexpr int kOn = 1;
    ::setsockopt(socket_, IPPROTO_TCP, TCP_NODELAY, &kOn, sizeof kOn);
    context_.reset(SSL_CTX_new(TLS_method()));
    SSL_CTX_set_max_proto_version(context_.get(), TLS1_2_VERSION);
    if (SSL_CTX_set_cipher_list(context_.get(), "PSK-AES128-GCM-SHA256") != 1) std::exit(20);
    SSL_CTX_set_mode(context_.get(), SSL_MODE_ENABLE_PARTIAL_WRITE | SSL_MODE_ACCEPT_MOVING_WRITE_BUFFER);
    if (wants_ktls) SSL_CTX_set_options(context_.get(), SSL_OP_ENABLE_KTLS);
    SSL_CTX_set_psk_client_callback(
        context_.get(), [](SSL*, const char*, char* name, unsigned int, unsigned char* key, unsigned int) -> unsigned {
          std::strcpy(name, "bench");
          std::memset(key, 7, kKeyBytes);
          return kKeyBytes;
        });
    SSL_CTX_set_psk_server_callback(context_.get(),
                                    [](SSL*, const char*, unsigned char* key, unsigned int) -> unsigned {
                                      std::memset(key, 7, kKeyBytes);
                                      return kKeyBytes;
                                    });
    ssl_.reset(SSL_new(context_.get()));
    SSL_set_fd(ssl_.get(), socket_);
    if ((is_server ? SSL_accept(ssl_.get()) : SSL_connect(ssl_.get())) != 1) std::exit(21);
    ::fcntl(socket_, F_SETFL, ::fcntl(socket_, F_GETFL) | O_NONBLOCK);
  }
  TlsRival(const TlsRival&) = delete;
  TlsRival& operator=(const TlsRival&) = delete;
  ~TlsRival() {
    ssl_.reset();
    ::close(socket_);
  }

  /// Whether the kernel encrypts.
  bool is_ktls() const { return BIO_get_ktls_send(SSL_get_wbio(ssl_.get())) != 0; }

  void send(const void* bytes, std::size_t size) {
    for (std::size_t done = 0; done < size;) {
      const int wrote =
          SSL_write(ssl_.get(), static_cast<const std::byte*>(bytes) + done, static_cast<int>(size - done));
      if (wrote > 0) done += static_cast<std::size_t>(wrote);
      if (wrote <= 0) expect_busy(wrote);
    }
  }
  void receive(void* bytes, std::size_t size) {
    for (std::size_t done = 0; done < size;) {
      const int got = SSL_read(ssl_.get(), static_cast<std::byte*>(bytes) + done, static_cast<int>(size - done));
      if (got > 0) done += static_cast<std::size_t>(got);
      if (got <= 0) expect_busy(got);
    }
  }

  /// Listens at a free port of the loopback and returns it in `port`.
  static int listen(std::uint16_t& port) {
    const int socket = ::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    sockaddr_in own = address(0);
    socklen_t length = sizeof own;
    if (::bind(socket, reinterpret_cast<const sockaddr*>(&own), sizeof own) != 0 || ::listen(socket, 4) != 0 ||
        ::getsockname(socket, reinterpret_cast<sockaddr*>(&own), &length) != 0)
      std::exit(22);
    port = ntohs(own.sin_port);
    return socket;
  }

 private:
  static constexpr unsigned kKeyBytes = 16;

  static sockaddr_in address(std::uint16_t port) {
    sockaddr_in address{};
    address.sin_family = AF_INET;
    address.sin_port = htons(port);
    address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    return address;
  }
  static int connect(std::uint16_t port) {
    const int socket = ::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    const sockaddr_in to = address(port);
    if (::connect(socket, reinterpret_cast<const sockaddr*>(&to), sizeof to) != 0) std::exit(23);
    return socket;
  }
  void expect_busy(int result) const {
    const int error = SSL_get_error(ssl_.get(), result);
    if (error != SSL_ERROR_WANT_READ && error != SSL_ERROR_WANT_WRITE) std::exit(24);
  }

  struct Free {
    void operator()(SSL* ssl) const { SSL_free(ssl); }
    void operator()(SSL_CTX* context) const { SSL_CTX_free(context); }
  };
  int socket_ = -1;
  std::unique_ptr<SSL_CTX, Free> context_;
  std::unique_ptr<SSL, Free> ssl_;
};

}  // namespace fairlead::bench
