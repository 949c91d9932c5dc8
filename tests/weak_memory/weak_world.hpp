#pragma once
// Two threads under a weak memory model that execute the code of src, as tests/models/weak_memory.pml does for models.
//
// Each word has a modification order. A thread has a view: the newest store that it knows of each word. A load reads
// that store or any newer one. A release store carries its writer's view, and an acquire load of it joins that view.
// Between any two accesses the other thread may run. Choices decides what a run leaves open, within bounds on thread
// switches and on loads of old stores.
//
// Memory that is not a word is a cell. Its accesses are checked as by ThreadSanitizer: two accesses by different
// threads, one of them a write, must be ordered.

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

/// A planted fault: a weakened memory order, or a store that is delayed until after the next store to another word.
struct PlantedFault {
  const CheckedWord* relaxed_load = nullptr;
  const CheckedWord* relaxed_store = nullptr;
  std::uintptr_t relaxed_load_at = 0;   // offset of the words within their cache line
  std::uintptr_t relaxed_store_at = 0;  // the same
  const CheckedWord* late = nullptr;    // this word's store is delayed
  const CheckedWord* early = nullptr;   // until after this word's store
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
  /// Runs `work` as thread `me` before run(). The thread sees what the other thread has prepared.
  void prepare(int me, const std::function<void()>& work);
  /// Runs both threads to their end. Returns what was wrong, or an empty string.
  std::string run(const std::function<void()>& first, const std::function<void()>& second);

  // For the threads.
  /// Called when the thread can only continue after the other one has acted.
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
    std::uint32_t written = 0;  // time of the last write; 0: none
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
  } held_;  // a delayed store
};

}  // namespace fairlead::tests
