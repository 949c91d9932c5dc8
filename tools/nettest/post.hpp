#pragma once
// Messages between a nettest's console and agents: one JSON object each, between transfer machines. The receiver polls.
// Anything that is no JSON object is dropped.

#include <fairlead/net.hpp>

#include <deque>
#include <memory>
#include <nlohmann/json.hpp>
#include <optional>
#include <string>

#include "tools/nettest/pooled_machine.hpp"

namespace fairlead::tools {

inline constexpr std::uint64_t kLetterBytesMax = 64 * 1024;

class NettestPost {
 public:
  struct Letter {
    nlohmann::json body;  // an object
    net::EndPoint from;
  };

  explicit NettestPost(net::Domain& domain);

  Result<> start(std::string_view address);
  const std::string& address() const { return node_.address(); }
  bool has_lost_engine() const { return node_.has_lost_engine(); }
  Result<net::EndPoint> find(std::string_view address) { return node_.machine().create_end_point(address); }

  /// After a failed send(): why.
  net::PeerProblem problem(const net::EndPoint& to, Status status) {
    return node_.machine().peer_facts(to, status).problem;
  }

  /// Sends a message and waits until the other side's engine has it.
  Result<> send(const net::EndPoint& to, const nlohmann::json& body);
  /// Returns the next message, or nullopt at `deadline`.
  std::optional<Letter> receive(Instant deadline);

 private:
  static constexpr std::size_t kLettersMax = 64;
  static constexpr Duration kSendAtMost = std::chrono::seconds{10};
  static constexpr Duration kLook = std::chrono::milliseconds{100};

  void on_message(const net::BufferEvent& event);
  void deliver(Instant until);

  std::deque<Letter> letters_;
  std::optional<Status> sent_;
  std::unique_ptr<net::Buffer> outbox_;
  PooledMachine node_;  // last, so that it ends before what its callbacks use
};

/// Extracts a T from a JSON object. Returns why that fails.
template <typename T>
Result<T> from_letter(const nlohmann::json& body, const char* key) {
  try {
    return body.at(key).get<T>();
  } catch (const nlohmann::json::exception& error) {
    return std::unexpected(Error{Status::invalid, 0, std::string("\"") + key + "\" of a command: " + error.what()});
  }
}

}  // namespace fairlead::tools
