#pragma once
// One reliable connection between two hosts of the queue-pair swarm. It posts requests of all kinds until something
// breaks, then both ends close and it starts again.
//
// Invariants: each request completes once and in order. A successful one had its complete effect, and its receive has
// completed before. A failed one had its effect at most once. Nothing of an earlier connection affects the next one.

#include <cstdint>
#include <deque>

#include "sim/pair_host.hpp"
#include "sim/pair_secret.hpp"

namespace fairlead::sim {

class PairConversation {
 public:
  /// `index` selects its part of the hosts' memory. Violations of the invariants go to `findings`.
  PairConversation(PairShared& shared, Findings& findings, std::uint32_t index, std::uint32_t from, std::uint32_t to);

  /// Opens, posts or closes, whatever is due.
  void act();
  /// Takes a completion of a host. Returns false if it belongs to another conversation.
  bool take(std::uint32_t host, const verbs::WorkCompletion& completion);
  void on_death(std::uint32_t host);

  bool is_honest() const { return near_.host < shared_.honest && far_.host < shared_.honest; }
  /// Adds what a third process could have found out about both ends.
  void betray(PairSecrets& secrets) const;

  bool is_closed() const { return state_ == State::closed; }
  std::uint64_t succeeded() const { return succeeded_; }
  std::uint64_t failed() const { return failed_; }
  std::uint32_t openings() const { return openings_; }

 private:
  static constexpr std::uint32_t kAreas = 4, kArea = 20'000;
  static constexpr std::uint64_t kRequestsMost = 400;
  static constexpr std::size_t kSlice = std::size_t{kAreas} * kArea + 64;

  enum class State : std::uint8_t { closed, open, broken, closing };
  struct End {
    std::uint32_t host = 0;
    qp::PairHandle handle{};
    std::uint32_t number = 0;
    bool is_there = false;
  };
  struct Request {
    std::uint64_t number = 0;
    verbs::SendOpcode opcode{};
    std::uint32_t size = 0;
  };

  PairHost& host(const End& end) const { return shared_.hosts[end.host]; }
  std::size_t area(std::uint64_t number) const { return index_ * kSlice + number % kAreas * kArea; }
  std::size_t counter() const { return index_ * kSlice + std::size_t{kAreas} * kArea; }
  std::uint64_t counter_value();
  static std::byte value(std::uint64_t request, std::size_t at) {
    return static_cast<std::byte>(request * 37 + at * 11 + (at >> 8));
  }

  void open();
  bool open_end(End& end);
  void connect(const End& end, const End& peer, std::uint32_t sq_psn, std::uint32_t rq_psn);
  void post();
  void post_receive();
  void close();
  void finish_close();
  void on_end(const verbs::WorkCompletion& completion);
  void on_receive(const verbs::WorkCompletion& completion);
  void check_effect(const Request& request);
  void check_memory(const PairHost& host, const Request& request);

  PairShared& shared_;
  Findings& findings_;
  std::uint32_t index_;
  End near_, far_;
  State state_ = State::closed;
  base::Instant open_at_{}, moved_at_{};
  std::uint64_t next_ = 0;          // number of the next request, counted over all openings
  std::uint64_t first_ = 0;         // the number of the first one since it was opened
  std::uint32_t psn_ = 0;           // and its sequence number
  std::deque<Request> pending_;     // posted, not completed
  std::deque<Request> to_receive_;  // posted and not received; the first `receives_` of them have a receive posted
  std::size_t receives_ = 0;
  std::uint64_t counter_begin_ = 0, added_ = 0, added_surely_ = 0;
  std::uint64_t succeeded_ = 0, failed_ = 0;
  std::uint32_t openings_ = 0;
};

}  // namespace fairlead::sim
