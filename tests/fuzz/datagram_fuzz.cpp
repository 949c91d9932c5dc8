// A link has an honest peer and a stranger. The input says what the stranger does in each state of their session:
// opening, half open, open, closed. The stranger has a link of its own. It changes that link's datagrams and repairs
// their checksums, replays old ones, makes up others, and forges sender addresses. The properties:
//   the honest two go on: each of their messages arrives once, complete and soon, and succeeds;
//   the link keeps state only for these two peers, and sends no address more than came from it;
//   each message to the stranger ends once, at the latest after the timeout for silence.
// In an encrypted world the stranger has a key. An attacker without a key is on the path of the honest two, and replays
// or changes their datagrams.

#include <array>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <deque>
#include <map>
#include <memory>
#include <set>
#include <source_location>
#include <utility>
#include <vector>

#include "link/link.hpp"
#include "tests/fuzz/script.hpp"
#include "tests/fuzz/sealing.hpp"
#include "wire/segment.hpp"

namespace {

using namespace fairlead;
using namespace fairlead::fuzz;
using namespace std::chrono_literals;

using Bytes = std::vector<std::byte>;

constexpr std::uint32_t kDatagram = 1472, kMessageMost = 20'000;
constexpr base::Duration kHonestWithin = 1s, kFlight = 20us;
constexpr std::size_t kHistory = 64;

void expect(bool is_true, std::source_location place = std::source_location::current()) {
  if (is_true) return;
  std::fprintf(stderr, "not so: %s:%u\n", place.file_name(), static_cast<unsigned>(place.line()));
  std::abort();
}

link::LinkOptions small_options() {
  link::LinkOptions options;
  options.window_segments = 64;
  options.window_bytes = 65'536;
  options.peers_max = 8;
  options.half_open_max = 4;
  options.reassembly_slots = 4;
  return options;
}

base::SocketAddress address_of(std::uint8_t host) {
  return *base::SocketAddress::from_ip("10.0.0." + std::to_string(host), 20480);
}

/// A link and its messages in flight.
struct End {
  End(std::uint8_t host, std::uint64_t epoch, bool is_sealed)
      : address(address_of(host)),
        link(std::make_unique<link::Link>(small_options(), epoch, epoch * 7919,
                                          is_sealed ? std::optional(sealing_of(epoch)) : std::nullopt)) {}

  base::SocketAddress address;
  std::unique_ptr<link::Link> link;
  std::map<std::uint64_t, base::Instant> pending;  // by cookie: when it was sent
  std::set<std::uint64_t> half;                    // partly received messages, by target
};

class World {
 public:
  explicit World(bool is_sealed) : is_sealed_(is_sealed) {}

  void act(Script& script) {
    const std::uint8_t action = script.byte();
    switch (action % 14) {
      case 0:
      case 1:
        return exchange(script);
      case 2:
        return submit(victim_, stranger_, script.take<std::uint16_t>() % kMessageMost);
      case 3:
        return submit(stranger_, victim_, script.take<std::uint16_t>() % kMessageMost);
      case 4:
      case 5:
        return send_from_stranger(1 + script.byte() % 16);
      case 6:
        return change(script);
      case 7:
        return action >= 0xE0 ? repeat_honest(script) : repeat(script);
      case 8:
      case 9:
        return make_up(script);
      case 10:
        is_deaf_ = !is_deaf_;
        return;
      case 11:
        return restart_stranger(script.byte());
      case 12:
        if (!outbox_.empty()) outbox_.pop_front();
        return;
      default:
        return pass(base::Duration(script.take<std::uint16_t>()) * (1 << (script.byte() % 20)));
    }
  }

  /// The stranger falls silent.
  void finish() {
    is_deaf_ = true;
    outbox_.clear();
    for (int i = 0; i < 3; ++i) submit(victim_, stranger_, 5000);
    const link::LinkOptions options = small_options();
    pass_in_steps(options.connect_within + options.give_up_after + 1s);
    expect(victim_.pending.empty());
    expect(honest_.pending.empty());
    if (has_met_) expect(victim_.half.empty());
    Script none(nullptr, 0);
    exchange(none);
    pass_in_steps(kHonestWithin);
  }

 private:
  struct Datagram {
    base::SocketAddress from;
    Bytes bytes;
  };

  // The honest ------------------------------------------------------------------------------------------------------

  void exchange(Script& script) {
    submit(honest_, victim_, script.take<std::uint16_t>() % kMessageMost);
    submit(victim_, honest_, script.take<std::uint16_t>() % kMessageMost);
    pass(kFlight);
  }

  void submit(End& from, const End& to, std::uint32_t size) {
    const auto peer = from.link->peer(to.address, kDatagram, now_);
    expect(peer.has_value());
    const std::uint64_t cookie = next_cookie_++;
    lists_.push_back({payload_.data(), size});
    const Status status =
        from.link->submit(*peer, {{.cookie = cookie, .a = size}, {&lists_.back(), 1}, size, cookie, true}, now_);
    expect(status == Status::ok || (status == Status::again && (&from == &stranger_ || &to == &stranger_)));
    if (status != Status::ok) return;
    from.pending[cookie] = now_;
    if (&from != &stranger_ && &to != &stranger_) expected_[cookie] = size;
  }

  void drain(End& end) {
    while (const auto outcome = end.link->next_outcome()) {
      const bool is_honest = expected_.contains(outcome->cookie);
      const auto found = end.pending.find(outcome->cookie);
      expect(found != end.pending.end());
      expect(!is_honest || (outcome->status == Status::ok && now_ - found->second <= kHonestWithin));
      end.pending.erase(found);
    }
    while (const auto notice = end.link->next_notice()) {
      if (&end == &victim_ && notice->kind == link::Notice::Kind::connected &&
          end.link->address(notice->peer) == stranger_.address)
        has_met_ = true;
      if (notice->kind == link::Notice::Kind::reassembly_lost) end.half.erase(notice->target);
    }
    for (int trains = 0; end.link->next_train(now_, 65'000, 64, train_); ++trains) {
      expect(trains < 10'000);
      post(end);
    }
  }

  void post(const End& from) {
    Bytes all;
    for (std::size_t i = 0; i < train_.piece_count; ++i) {
      const auto* begin = static_cast<const std::byte*>(train_.pieces[i].iov_base);
      all.insert(all.end(), begin, begin + train_.pieces[i].iov_len);
    }
    for (std::size_t begin = 0; begin < all.size(); begin += train_.datagram_size) {
      const std::size_t size = std::min<std::size_t>(train_.datagram_size, all.size() - begin);
      Bytes bytes(all.begin() + static_cast<std::ptrdiff_t>(begin),
                  all.begin() + static_cast<std::ptrdiff_t>(begin + size));
      if (&from == &stranger_) {
        outbox_.push_back({from.address, std::move(bytes)});
        if (outbox_.size() > kHistory) outbox_.pop_front();
      } else if (train_.to == honest_.address || train_.to == victim_.address) {
        wire_.push_back({train_.to, {from.address, std::move(bytes)}});
      } else if (train_.to == stranger_.address) {
        if (!is_deaf_) hear(stranger_, {from.address, bytes});
      } else {
        unknown_bytes_ -= static_cast<std::int64_t>(bytes.size());
        expect(unknown_bytes_ >= 0);
      }
    }
  }

  void hear(End& end, const Datagram& datagram) {
    end.link->receive(datagram.from, datagram.bytes, now_, kDatagram);
    while (const auto delivery = end.link->next_delivery()) {
      expect(delivery->offset + delivery->bytes.size() <= delivery->size);
      take(end, *delivery);
    }
  }

  void take(End& end, const link::Delivery& delivery) {
    const bool is_in_part = delivery.reassembly != link::Delivery::kWhole;
    if (is_in_part && delivery.target == 0) {
      end.link->set_target(delivery.peer, delivery.reassembly, next_target_);
      if (!delivery.is_last) end.half.insert(next_target_);
      ++next_target_;
    } else if (delivery.is_last) {
      end.half.erase(delivery.target);
    }
    // A message between the honest two is identified by its cookie and its sender.
    const base::SocketAddress& from = end.link->address(delivery.peer);
    if (&end == &stranger_ || from == stranger_.address) return;
    const auto found = expected_.find(delivery.envelope.cookie);
    expect(found != expected_.end() && found->second == delivery.size && delivery.envelope.a == delivery.size);
    arrived_[delivery.envelope.cookie] += delivery.bytes.size();
    expect(arrived_[delivery.envelope.cookie] <= delivery.size);
    if (delivery.is_last) expect(arrived_[delivery.envelope.cookie] == delivery.size);
  }

  // The stranger ----------------------------------------------------------------------------------------------------

  /// Bytes forged from an unused address raise the limit of what the link may send there.
  void note_sender(const Datagram& datagram) {
    if (datagram.from != stranger_.address && datagram.from != honest_.address && datagram.from != victim_.address)
      unknown_bytes_ += static_cast<std::int64_t>(datagram.bytes.size());
  }

  void arrive(const Datagram& datagram) {
    note_sender(datagram);
    hear(victim_, datagram);
    drain(victim_);
    check();
  }

  void send_from_stranger(std::size_t count) {
    for (; count > 0 && !outbox_.empty(); --count) {
      history_.push_back(outbox_.front());
      if (history_.size() > kHistory) history_.pop_front();
      outbox_.pop_front();
      arrive(history_.back());
    }
  }

  void change(Script& script) {
    if (outbox_.empty()) return;
    Bytes& bytes = outbox_[script.byte() % outbox_.size()].bytes;
    for (int changes = 1 + script.byte() % 4; changes > 0; --changes)
      bytes[script.take<std::uint16_t>() % bytes.size()] = static_cast<std::byte>(script.byte());
    wire::add_checksum(bytes, {});
  }

  void repeat(Script& script) {
    if (history_.empty()) return;
    Datagram datagram = history_[script.byte() % history_.size()];
    datagram.from = sender(script.byte());
    arrive(datagram);
  }

  /// Replays a datagram of the honest two, if they encrypt. Without encryption the stranger could impersonate them.
  void repeat_honest(Script& script) {
    const std::uint8_t how = script.byte();
    if (!is_sealed_ || honest_said_.empty()) return;
    auto [to, datagram] = honest_said_[script.byte() % honest_said_.size()];
    for (int changes = how % 4; changes > 0; --changes)
      datagram.bytes[script.take<std::uint16_t>() % datagram.bytes.size()] = static_cast<std::byte>(script.byte());
    if ((how & 0x10) != 0) wire::add_checksum(datagram.bytes, {});
    if ((how & 0x20) != 0) to = to == victim_.address ? honest_.address : victim_.address;
    if ((how & 0x40) != 0) datagram.from = sender(script.byte());
    if (to == victim_.address) return arrive(datagram);
    note_sender(datagram);
    hear(honest_, datagram);
    drain(honest_);
    check();
  }

  /// Sends any segment with any sender address.
  void make_up(Script& script) {
    wire::Header header;
    header.kind = static_cast<wire::Kind>(script.byte() % 12);
    header.flags = script.byte();
    header.slot = script.byte() % 4;
    const std::uint8_t token = script.byte();
    header.token = token < 64                         ? 0
                   : token < 128 && !history_.empty() ? token_of(history_[token % history_.size()])
                                                      : script.take<std::uint64_t>();
    header.sequence = {script.take<std::uint32_t>()};
    header.ack = {script.take<std::uint32_t>()};
    header.ack_bitmap = script.take<std::uint64_t>();
    Bytes bytes(wire::kSegmentHeaderBytes + script.byte());
    wire::encode(header, bytes.data());
    for (std::size_t at = wire::kSegmentHeaderBytes; at < bytes.size(); ++at)
      bytes[at] = static_cast<std::byte>(script.byte());
    wire::add_checksum(bytes, {});
    arrive({sender(script.byte()), bytes});
  }

  static std::uint64_t token_of(const Datagram& datagram) {
    const auto frame = wire::decode(datagram.bytes);
    return frame ? frame->header.token : 0;
  }

  base::SocketAddress sender(std::uint8_t choice) const {
    if (choice < 100) return stranger_.address;
    if (choice < 180) return honest_.address;
    return address_of(static_cast<std::uint8_t>(100 + choice % 100));
  }

  void restart_stranger(std::uint8_t how) {
    if (how % 2 == 0) {
      stranger_.link->disconnect_all(now_);
      drain(stranger_);
    }
    stranger_ = End(9, ++epoch_, is_sealed_);
  }

  // Time ------------------------------------------------------------------------------------------------------------

  void pass(base::Duration span) {
    now_ += std::min<base::Duration>(span, 200ms);
    settle();
  }
  void pass_in_steps(base::Duration span) {
    for (const base::Instant end = now_ + span; now_ < end;) pass(5ms);
  }

  /// Delivers the honest datagrams at once. Those of the stranger wait for the input.
  void settle() {
    for (int rounds = 0; rounds < 1000; ++rounds) {
      for (End* end : {&victim_, &honest_, &stranger_}) {
        end->link->expire(now_);
        drain(*end);
      }
      if (wire_.empty()) break;
      for (auto datagrams = std::exchange(wire_, {}); const auto& [to, datagram] : datagrams) {
        if (is_sealed_) honest_said_.emplace_back(to, datagram);
        if (honest_said_.size() > kHistory) honest_said_.pop_front();
        hear(to == victim_.address ? victim_ : honest_, datagram);
      }
      now_ += kFlight;
    }
    check();
  }

  void check() const {
    expect(victim_.link->counters().is_consistent());
    expect(honest_.link->counters().is_consistent());
    expect(victim_.link->peer_count() <= 2);
    expect(honest_.link->peer_count() <= 1);
    for (const auto& [cookie, since] : honest_.pending) expect(now_ - since <= kHonestWithin);
  }

  const bool is_sealed_;
  End victim_{1, 11, is_sealed_}, honest_{2, 12, is_sealed_}, stranger_{9, 1000, is_sealed_};
  std::uint64_t epoch_ = 1000;
  std::deque<Datagram> outbox_, history_;  // the stranger's
  std::vector<std::pair<base::SocketAddress, Datagram>> wire_;
  std::deque<std::pair<base::SocketAddress, Datagram>> honest_said_;  // in sealed worlds
  std::map<std::uint64_t, std::uint64_t> expected_, arrived_;
  std::deque<iovec> lists_;
  Bytes payload_ = Bytes(kMessageMost, std::byte{0x3C});
  std::uint64_t next_cookie_ = 1, next_target_ = 1;
  std::int64_t unknown_bytes_ = 0;
  bool is_deaf_ = false, has_met_ = false;
  base::Instant now_{1s};
  link::Train train_;
};

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  return play<World>(data, size, 400);
}
