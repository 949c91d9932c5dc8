#include "tests/weak_memory/weak_world.hpp"

#include <algorithm>
#include <utility>

#include "base/ensure.hpp"

namespace fairlead::tests {
namespace {

WeakWorld* current_world = nullptr;

bool lies_at(const CheckedWord& word, std::uintptr_t offset) {
  return offset != 0 && reinterpret_cast<std::uintptr_t>(&word) % 64 == offset;
}

}  // namespace

std::uint64_t CheckedWord::load(std::memory_order order) const {
  return WeakWorld::current().load(*this, order);
}

void CheckedWord::store(std::uint64_t value, std::memory_order order) {
  WeakWorld::current().store(*this, value, order);
}

WeakWorld::WeakWorld(Choices& choices, const Bounds& bounds) : choices_(choices), left_(bounds) {
  ENSURE(current_world == nullptr, "one world at a time");
  current_world = this;
  for (int i = 0; i < kThreads; ++i) threads_[i].times[i] = 1;
}

WeakWorld::~WeakWorld() {
  current_world = nullptr;
}

WeakWorld& WeakWorld::current() {
  ENSURE(current_world != nullptr, "a checked word outside of any world");
  return *current_world;
}

void WeakWorld::prepare(int me, const std::function<void()>& work) {
  me_ = me;
  Thread& own = threads_[me];
  const Thread& other = threads_[1 - me];
  std::ranges::transform(own.view, other.view, own.view.begin(), std::ranges::max);
  own.times[1 - me] = other.times[1 - me] - 1;  // excludes what the other thread does from now on
  work();
  ++own.times[me];
}

std::string WeakWorld::run(const std::function<void()>& first, const std::function<void()>& second) {
  threads_[0].work = first;
  threads_[1].work = second;
  for (int i = 0; i < kThreads; ++i) {
    Thread& thread = threads_[i];
    thread.is_over = false;
    thread.stack = std::make_unique_for_overwrite<std::byte[]>(kStackBytes);
    ::getcontext(&thread.context);
    thread.context.uc_stack.ss_sp = thread.stack.get();
    thread.context.uc_stack.ss_size = kStackBytes;
    thread.context.uc_link = nullptr;
    ::makecontext(&thread.context, reinterpret_cast<void (*)()>(&WeakWorld::start), 1, i);
  }
  is_running_ = true;
  me_ = static_cast<int>(choices_.choose(kThreads));
  ::swapcontext(&outside_, &threads_[me_].context);
  is_running_ = false;
  return wrong_;
}

void WeakWorld::start(int number) {
  WeakWorld& world = current();
  Thread& own = world.threads_[number];
  own.work();
  own.is_over = true;
  if (world.threads_[1 - number].is_over) ::setcontext(&world.outside_);
  world.turn_to(1 - number);
}

void WeakWorld::turn_to(int other) {
  const int before = std::exchange(me_, other);
  ::swapcontext(&threads_[before].context, &threads_[other].context);
}

void WeakWorld::fail(std::string why) {
  wrong_ = std::move(why);
  ::setcontext(&outside_);
  std::unreachable();
}

// Called before each access.
void WeakWorld::step() {
  if (!is_running_) return;
  if (++steps_ > kStepsMax) fail("it comes to no end");
  if (left_.interruptions == 0 || threads_[1 - me_].is_over || choices_.choose(2) == 0) return;
  --left_.interruptions;
  turn_to(1 - me_);
}

// A thread that polls up to the bound, each time with a newer view, waits for ever.
void WeakWorld::wait() {
  if (!threads_[1 - me_].is_over) turn_to(1 - me_);
  if (++steps_ > kStepsMax) fail("both wait");
}

std::vector<WeakWorld::Store>& WeakWorld::stores_of(const CheckedWord& word) {
  if (word.number_ == 0) {
    word.number_ = words_.size();
    ENSURE(word.number_ < kWordsMax, "more than {} words", kWordsMax);
    words_.emplace_back(1);  // zeroed memory
  }
  return words_[word.number_];
}

void WeakWorld::join(const Store& store) {
  Thread& own = threads_[me_];
  std::ranges::transform(own.view, store.view, own.view.begin(), std::ranges::max);
  std::ranges::transform(own.times, store.times, own.times.begin(), std::ranges::max);
}

std::uint64_t WeakWorld::load(const CheckedWord& word, std::memory_order order) {
  step();
  const auto& stores = stores_of(word);
  std::uint16_t& newest = threads_[me_].view[word.number_];
  std::size_t at = stores.size() - 1;
  if (is_running_ && left_.old_loads > 0) at -= choices_.choose(at - newest + 1);
  if (at + 1 < stores.size()) --left_.old_loads;
  newest = static_cast<std::uint16_t>(at);
  const bool is_weak = fault_.relaxed_load == &word || lies_at(word, fault_.relaxed_load_at);
  if (order != std::memory_order_relaxed && !is_weak && stores[at].is_release) join(stores[at]);
  return stores[at].value;
}

void WeakWorld::store(CheckedWord& word, std::uint64_t value, std::memory_order order) {
  if (is_running_ && fault_.late == &word) {
    held_ = {&word, value, order};
    return;
  }
  append(word, value, order);
  if (fault_.early == &word && held_.word != nullptr) {
    const Held late = std::exchange(held_, {});
    append(*late.word, late.value, late.order);
  }
}

void WeakWorld::append(CheckedWord& word, std::uint64_t value, std::memory_order order) {
  step();
  auto& stores = stores_of(word);
  Thread& own = threads_[me_];
  own.view[word.number_] = static_cast<std::uint16_t>(stores.size());
  const bool is_weak = fault_.relaxed_store == &word || lies_at(word, fault_.relaxed_store_at);
  if (order == std::memory_order_relaxed || is_weak) {
    stores.push_back({.value = value});
    return;
  }
  stores.push_back({value, true, own.view, own.times});
  ++own.times[me_];
}

std::uint64_t WeakWorld::read(const void* place) {
  Cell& cell = cells_[place];
  if (cell.written != 0 && !is_known(cell.writer, cell.written)) fail("a read races with a write");
  cell.read[me_] = threads_[me_].times[me_];
  return cell.value;
}

void WeakWorld::write(const void* place, std::uint64_t value) {
  Cell& cell = cells_[place];
  if (cell.written != 0 && !is_known(cell.writer, cell.written)) fail("a write races with a write");
  if (!is_known(1 - me_, cell.read[1 - me_])) fail("a write races with a read");
  cell.value = value;
  cell.writer = me_;
  cell.written = threads_[me_].times[me_];
}

}  // namespace fairlead::tests
