// Peers write anything into the pages and the doorbell that they share with the poller, while the poller looks, arms,
// sleeps and wakes, and while some peers leave. The poller looks only at existing peers, at no more than it watches,
// and at each peer for which it set a reminder.

#include <poll.h>
#include <sys/eventfd.h>

#include <algorithm>
#include <array>
#include <memory>
#include <vector>

#include "base/ensure.hpp"
#include "shm/watch.hpp"
#include "tests/fuzz/script.hpp"

namespace {

using namespace fairlead;

constexpr std::uint32_t kPeers = 12;
constexpr std::size_t kRingBytes = 4096;
constexpr std::uint64_t kSecret = 0x1234'5678'9abc'def0;

class World {
 public:
  World(const std::uint8_t* data, std::size_t size)
      : script_(data, size),
        memory_(shm::Memory::create(shm::kShmBellLayout).value()),
        watch_(peers_, shm::Doorbell(shm::Memory::adopt(memory_.descriptor(), shm::kShmBellLayout).value()),
               base::FileDescriptor(::eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK)), counters_) {
    for (std::uint32_t slot = 0; slot < kPeers; ++slot) open();
  }

  void run() {
    while (!script_.is_over()) act();
  }

 private:
  void open() {
    const std::uint32_t slot = peers_.acquire();
    if (slot == shm::ConnectionTable::kNone) return;
    if (slot >= pages_.size()) pages_.push_back(std::make_unique<Page>());
    shm::Connection& peer = peers_[slot];
    peer.own = &pages_[slot]->pair.sides[0];
    peer.other = &pages_[slot]->pair.sides[1];
    const std::uint32_t lines = kRingBytes / shm::kRingLine;
    peer.writer = shm::RingWriter({pages_[slot]->rings[0].data(), lines, kSecret}, peer.other->passed);
    peer.reader = shm::RingReader({pages_[slot]->rings[1].data(), lines, kSecret}, peer.own->passed);
    peer.state = shm::Connection::State::open;
    watch_.begin(slot);
  }

  void act() {
    const std::uint32_t slot = script_.take<std::uint8_t>() % kPeers;
    switch (script_.take<std::uint8_t>() % 8) {
      case 0:
      case 1:
        return lie(slot);
      case 2:
        return look();
      case 3:
        if (watch_.arm()) {
          lie(slot);
          look();
          ENSURE(seen_.empty() || is_roused(), "looked at {} peers while another slept", seen_.size());
          watch_.disarm();
          ENSURE(!is_roused(), "still roused");
        }
        return;
      case 4: {
        if (!peers_[slot].is_audible()) return open();
        watch_.forget(slot);
        peers_.release(slot);
        return;
      }
      case 5:
        if (peers_[slot].is_audible()) watch_.note_traffic(slot);
        return;
      case 6:
        if (!peers_[slot].is_audible()) return;
        watch_.remind(slot);
        lie(slot);
        look();
        ENSURE(std::ranges::find(seen_, slot) != seen_.end(), "peer {} was not looked at", slot);
        return;
      default:
        for (int i = 0; i < 1000; ++i) look();
    }
  }

  bool is_roused() const {
    pollfd one{watch_.alarm_descriptor(), POLLIN, 0};
    return ::poll(&one, 1, 0) == 1;
  }

  void look() {
    seen_.clear();
    watch_.begin_look();
    for (auto slot = watch_.next(); slot != shm::ConnectionTable::kNone; slot = watch_.next()) {
      ENSURE(slot < peers_.size() && peers_[slot].is_audible(), "looked at {}, which there is not", slot);
      ENSURE(seen_.size() <= 2 * kPeers, "the look does not end");
      seen_.push_back(slot);
    }
    std::array<int, kPeers> watched{};
    watch_.for_each_watched([&](std::uint32_t slot) {
      ENSURE(peers_[slot].is_watched && peers_[slot].is_audible(), "watches {}", slot);
      ++watched[slot];
    });
    ENSURE(std::ranges::all_of(watched, [](int times) { return times <= 1; }), "watches somebody twice");
  }

  void lie(std::uint32_t slot) {
    shm::PairSide& side = pages_[slot]->pair.sides[script_.take<std::uint8_t>() % 2];
    const auto word = script_.take<std::uint8_t>();
    auto& doorbell = *reinterpret_cast<shm::DoorbellPage*>(memory_.head());
    switch (script_.take<std::uint8_t>() % 6) {
      case 0:
        return side.is_watching.store(word % 2);
      case 1:
        return side.at.store(word);
      case 2:
        return side.passed.store(word);
      case 3:
        return doorbell.summary.store(script_.take<std::uint64_t>());
      case 4:
        return doorbell.words[word % shm::DoorbellPage::kWords].store(script_.take<std::uint64_t>());
      default:
        return doorbell.is_asleep.store(word % 2);
    }
  }

  struct Page {
    shm::PairPage pair;
    alignas(64) std::array<std::array<std::byte, 2 * kRingBytes>, 2> rings{};
  };

  fuzz::Script script_;
  shm::Memory memory_;
  shm::ConnectionCounters counters_;
  std::vector<std::unique_ptr<Page>> pages_;
  shm::ConnectionTable peers_{kPeers};
  shm::Watch watch_;
  std::vector<std::uint32_t> seen_;
};

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  World(data, size).run();
  return 0;
}
