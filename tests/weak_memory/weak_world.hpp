#pragma once
// Two threads and a weak memory, in which the code of src runs: what tests/models/weak_memory.pml is for models.
//
// Each word has its stores in their order. A thread has a view: of each word the newest store that it knows of. A load
// gets that one or any newer. A release store carries its writer's view, an acquire load of it joins that view. The
// threads take turns: between any two accesses the other one may go on. What a run leaves open is chosen (Choices),
// within bounds: how often a thread is interrupted, and how many loads get an old store.
//
// Memory that is no word is a cell. Its reads and writes are checked as the thread sanitizer does: two of different
// threads, of which one is a write, need an order.

#include <ucontext.h>

#include <array>
#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "tests/weak_memory/checked_word.hpp"
#include "tests/weak_memory/choices.hpp"

namespace fairlead::tests {

/// A fault to plant: an order that is left out, or a store that comes after the next one to another word.
struct PlantedFault {
  const CheckedWord* relaxed_load = nullptr;
  const CheckedWord* relaxed_store = nullptr;
  std::uintptr_t relaxed_load_at = 0;   // words of this offset in their line
  std::uintptr_t relaxed_store_at = 0;  // the same
  const CheckedWord* late = nullptr;    // stored after
  const CheckedWord* early = nullptr;   // this one
};

class WeakWorld {
 public:
  static constexpr int kThreads = 2;

  struct Bounds {
    int interruptions = 2;
    int old_loads = 1;
  };

  WeakWorld(Choices& choices, const Bounds& bounds);
  ~WeakWorld();
  WeakWorld(const WeakWorld&) = delete;
  WeakWorld& operator=(const WeakWorld&) = delete;

  void plant(const PlantedFault& fault) { fault_ = fault; }
  /// Before they run: thread `me` does this by itself, and knows what the other one has done.
  void prepare(int me, const std::function<void()>& work);
  /// Both to their end. What was wrong, or nothing.
  std::string run(const std::function<void()>& first, const std::function<void()>& second);

  // For the threads.
  /// Nothing to do before the other one has done something.
  void wait();
  std::uint64_t read(const void* cell);
  void write(const void* cell, std::uint64_t value);
  /// Ends the run.
  [[noreturn]] void fail(std::string why);

  // For CheckedWord.
  static WeakWorld& current();
  std::uint64_t load(const CheckedWord& word, std::memory_order order);
  void store(CheckedWord& word, std::uint64_t value, std::memory_order order);

 private:
  static constexpr std::size_t kWordsMax = 64;
  static constexpr int kStepsMax = 2'000;
  static constexpr std::size_t kStackBytes = std::size_t{64} * 1024;

  using View = std::array<std::uint16_t, kWordsMax>;
  using Times = std::array<std::uint32_t, kThreads>;
  struct Store {
    std::uint64_t value = 0;
    bool is_release = false;
    View view{};
    Times times{};
  };
  struct Cell {
    std::uint64_t value = 0;
    Times read{};
    int writer = 0;
    std::uint32_t written = 0;  // when; 0: never
  };
  struct Thread {
    View view{};
    Times times{};
    std::function<void()> work;
    std::unique_ptr<std::byte[]> stack;
    ucontext_t context{};
    bool is_over = true;
  };

  static void start(int number);
  void step();
  void turn_to(int other);
  void append(CheckedWord& word, std::uint64_t value, std::memory_order order);
  std::vector<Store>& stores_of(const CheckedWord& word);
  void join(const Store& store);
  bool is_known(int writer, std::uint32_t time) const { return threads_[me_].times[writer] >= time; }

  Choices& choices_;
  Bounds left_;
  PlantedFault fault_;
  std::array<Thread, kThreads> threads_;
  std::vector<std::vector<Store>> words_{1};
  std::map<const void*, Cell> cells_;
  int me_ = 0;
  int steps_ = 0;
  bool is_running_ = false;
  ucontext_t outside_{};
  std::string wrong_;
  struct Held {
    CheckedWord* word = nullptr;
    std::uint64_t value = 0;
    std::memory_order order{};
  } held_;  // a planted late store
};

}  // namespace fairlead::tests
