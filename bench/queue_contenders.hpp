#pragma once
// The contenders of queue_bench, with one interface:
//   bytes(), make(memory), end(memory)  the shared memory; kCrosses: works between processes
//   Receiver(memory).receive(n, max)    takes up to max records and checks that they are n, n + 1, ...; 0: empty
//   Sender(memory).send(n, max)         sends up to max records n, n + 1, ..., returns how many; 0: full
// Make the Receiver of a queue before its Sender.

#include <readerwriterqueue/readerwriterqueue.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <boost/lockfree/spsc_queue.hpp>
#include <cstdint>
#include <memory>
#include <new>

// Concurrency Kit 0.7.1 returns `false` as a null pointer, which only C permits.
#if defined(__clang__)
#pragma clang diagnostic ignored "-Wkeyword-macro"
#endif
#define false 0
#include <ck_ring.h>
#undef false

#include "base/ensure.hpp"
#include "queue/consumer.hpp"
#include "queue/producer.hpp"

namespace fairlead::bench {

inline constexpr std::uint32_t kCapacity = 1024;

template <std::size_t Bytes>
struct Record {
  std::array<std::uint64_t, Bytes / 8> words;

  Record() = default;
  explicit Record(std::uint64_t number) { words.fill(number); }
  void check(std::uint64_t number) const {
    ENSURE(words.front() == number && words.back() == number, "record {} arrived as {}", number, words.front());
  }
};

/// The event queue, written and read in place.
template <std::size_t Bytes, std::uint32_t Batch>
struct EventQueue {
  static constexpr bool kCrosses = true;
  static std::size_t bytes() { return queue::segment_bytes(Bytes, kCapacity); }
  static void make(std::byte*) {}
  static void end(std::byte*) {}

  struct Receiver {
    queue::Consumer consumer;
    explicit Receiver(std::byte* memory)
        : consumer(std::move(queue::Consumer::create({memory, bytes()}, {Bytes, kCapacity, 0}).value())) {}

    std::uint32_t receive(std::uint64_t number, std::uint32_t max) {
      if constexpr (Batch == 1) {
        const auto* element = consumer.get();
        if (element == nullptr) return 0;
        reinterpret_cast<const Record<Bytes>*>(element)->check(number);
        return 1;
      } else {
        const auto taken = consumer.get(std::min(max, Batch));
        const auto* records = reinterpret_cast<const Record<Bytes>*>(taken.first);
        for (std::uint32_t i = 0; i < taken.count; ++i) records[i].check(number + i);
        return taken.count;
      }
    }
  };

  struct Sender final : queue::SegmentSource {
    std::byte* memory;
    queue::Producer producer;
    explicit Sender(std::byte* at) : memory(at), producer(std::move(queue::Producer::attach(*this).value())) {}
    std::span<std::byte> map(queue::SegmentNumber number) override {
      return number.value == 0 ? std::span{memory, bytes()} : std::span<std::byte>{};
    }

    std::uint32_t send(std::uint64_t number, std::uint32_t max) {
      if constexpr (Batch == 1) {
        auto* element = producer.pnext();
        if (element == nullptr) return 0;
        new (element) Record<Bytes>(number);
        producer.put();
        return 1;
      } else {
        const auto given = producer.pnext(std::min(max, Batch));
        for (std::uint32_t i = 0; i < given.count; ++i) new (given.first + i * Bytes) Record<Bytes>(number + i);
        if (given.count != 0) producer.put(given.count);
        return given.count;
      }
    }
  };
};

template <std::size_t Bytes, std::uint32_t Batch>
struct BoostQueue {
  using Queue = boost::lockfree::spsc_queue<Record<Bytes>, boost::lockfree::capacity<kCapacity>>;
  static constexpr bool kCrosses = true;
  static std::size_t bytes() { return sizeof(Queue); }
  static void make(std::byte* memory) { new (memory) Queue; }
  static void end(std::byte* memory) { reinterpret_cast<Queue*>(memory)->~Queue(); }

  struct Receiver {
    Queue& queue;
    std::array<Record<Bytes>, Batch> records;
    explicit Receiver(std::byte* memory) : queue(*reinterpret_cast<Queue*>(memory)) {}
    std::uint32_t receive(std::uint64_t number, std::uint32_t max) {
      const auto taken =
          Batch == 1 ? std::size_t{queue.pop(records[0])} : queue.pop(records.data(), std::min(max, Batch));
      for (std::size_t i = 0; i < taken; ++i) records[i].check(number + i);
      return static_cast<std::uint32_t>(taken);
    }
  };

  struct Sender {
    Queue& queue;
    std::array<Record<Bytes>, Batch> records;
    explicit Sender(std::byte* memory) : queue(*reinterpret_cast<Queue*>(memory)) {}
    std::uint32_t send(std::uint64_t number, std::uint32_t max) {
      if constexpr (Batch == 1) return queue.push(Record<Bytes>(number));
      const auto wanted = std::min(max, Batch);
      for (std::uint32_t i = 0; i < wanted; ++i) records[i] = Record<Bytes>(number + i);
      return static_cast<std::uint32_t>(queue.push(records.data(), wanted));
    }
  };
};

/// Concurrency Kit's ring, with records by value.
template <std::size_t Bytes>
struct CkRing {
  struct Shared {
    ck_ring_t ring;
    std::array<Record<Bytes>, kCapacity> records;
  };
  static constexpr bool kCrosses = true;
  static std::size_t bytes() { return sizeof(Shared); }
  static void make(std::byte* memory) { ck_ring_init(&(new (memory) Shared)->ring, kCapacity); }
  static void end(std::byte*) {}

  struct Receiver {
    Shared& shared;
    explicit Receiver(std::byte* memory) : shared(*reinterpret_cast<Shared*>(memory)) {}
    std::uint32_t receive(std::uint64_t number, std::uint32_t) {
      Record<Bytes> record;
      if (!_ck_ring_dequeue_sc(&shared.ring, shared.records.data(), &record, sizeof record)) return 0;
      record.check(number);
      return 1;
    }
  };

  struct Sender {
    Shared& shared;
    explicit Sender(std::byte* memory) : shared(*reinterpret_cast<Shared*>(memory)) {}
    std::uint32_t send(std::uint64_t number, std::uint32_t) {
      const Record<Bytes> record(number);
      return _ck_ring_enqueue_sp(&shared.ring, shared.records.data(), &record, sizeof record, nullptr) ? 1 : 0;
    }
  };
};

/// Its blocks are on the heap, so it works within one process only.
template <std::size_t Bytes>
struct Moodycamel {
  using Queue = moodycamel::ReaderWriterQueue<Record<Bytes>>;
  static constexpr bool kCrosses = false;
  static std::size_t bytes() { return sizeof(Queue); }
  static void make(std::byte* memory) { new (memory) Queue(kCapacity); }
  static void end(std::byte* memory) { reinterpret_cast<Queue*>(memory)->~Queue(); }

  struct Receiver {
    Queue& queue;
    explicit Receiver(std::byte* memory) : queue(*reinterpret_cast<Queue*>(memory)) {}
    std::uint32_t receive(std::uint64_t number, std::uint32_t) {
      const auto* record = queue.peek();
      if (record == nullptr) return 0;
      record->check(number);
      queue.pop();
      return 1;
    }
  };

  struct Sender {
    Queue& queue;
    explicit Sender(std::byte* memory) : queue(*reinterpret_cast<Queue*>(memory)) {}
    std::uint32_t send(std::uint64_t number, std::uint32_t) { return queue.try_enqueue(Record<Bytes>(number)) ? 1 : 0; }
  };
};

}  // namespace fairlead::bench
