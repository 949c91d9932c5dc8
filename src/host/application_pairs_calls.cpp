// What is asked for rarely: checked, bounded, answered.

#include <algorithm>
#include <array>
#include <bit>
#include <cerrno>
#include <cstring>
#include <utility>

#include <fmt/format.h>

#include <fairlead/verbs/device.hpp>

#include "host/application_pairs.hpp"
#include "host/pair_calls.hpp"
#include "qp/send_queue.hpp"

namespace fairlead::host {
namespace {

using Kind = PairCall::Kind;
using verbs::QpState;
using verbs::QpType;

constexpr verbs::DeviceLimits kLimits;
constexpr std::uint32_t kAccess = verbs::access::local_write | verbs::access::remote_write |
                                  verbs::access::remote_read | verbs::access::remote_atomic | verbs::access::mw_bind |
                                  verbs::access::zero_based | verbs::access::huge_pages | verbs::access::optional_range;

std::unexpected<Error> refused(Status status, std::string message) {
  return std::unexpected(Error{status, to_errno(status), std::move(message)});
}

std::unexpected<Error> stale(const char* what) {
  return std::unexpected(Error{Status::stale, EINVAL, fmt::format("the host engine knows no such {}", what)});
}

std::unexpected<Error> senseless(const char* what) {
  return refused(Status::invalid, fmt::format("{} of a kind that no library of ours asks for", what));
}

/// With room for the completions of all.
std::uint64_t bytes_of_receives(std::uint32_t depth, std::uint32_t pieces) {
  const std::uint64_t per_receive =
      16 + std::uint64_t{std::max(pieces, 1U)} * sizeof(verbs::Sge) + sizeof(qp::PairEvent);
  return std::bit_ceil(std::uint64_t{depth}) * per_receive;
}

std::uint64_t bytes_of(const PairCall& call) {
  const std::uint64_t per_send = sizeof(qp::SendEntry) + std::uint64_t{call.max_send_sge} * sizeof(verbs::Sge) +
                                 call.max_inline + sizeof(qp::PairEvent);
  return std::bit_ceil(std::uint64_t{call.max_send_wr}) * per_send +
         (call.shares_receives != 0 ? 0 : bytes_of_receives(call.max_recv_wr, call.max_recv_sge));
}

bool is_legal(QpType type, QpState from, QpState to) {
  switch (to) {
    case QpState::reset:
      return true;
    case QpState::err:
      return from != QpState::reset;
    case QpState::init:
      return from == QpState::reset || from == QpState::init;
    case QpState::rtr:
      return from == QpState::init;
    case QpState::rts:
      return from == QpState::rtr || from == QpState::rts || from == QpState::sqd ||
             (from == QpState::sqe && type != QpType::rc);
    case QpState::sqd:
      return from == QpState::rts || from == QpState::sqd;
    case QpState::sqe:
      break;
  }
  return false;
}

bool is_possible(const PairCall& call) {
  const bool is_type = call.type >= std::to_underlying(QpType::rc) && call.type <= std::to_underlying(QpType::ud);
  const bool is_uc = call.type == std::to_underlying(QpType::uc);
  const bool are_receives_good =
      call.shares_receives != 0
          ? !is_uc
          : call.max_recv_wr >= 1 && call.max_recv_wr <= kLimits.max_qp_wr && call.max_recv_sge <= kLimits.max_sge;
  return is_type && are_receives_good && call.max_send_wr >= 1 && call.max_send_wr <= kLimits.max_qp_wr &&
         call.max_send_sge <= kLimits.max_sge && call.max_inline <= kLimits.max_inline;
}

}  // namespace

void ApplicationPairs::take_call(const TakenRequest& taken) {
  const PairRequest& head = taken.head;
  if (taken.body.size() < sizeof(PairCall) || (taken.body.size() - sizeof(PairCall)) % sizeof(MemoryPiece) != 0 ||
      taken.body.size() > sizeof(PairCall) + sizeof(MemoryPiece) * kMemoryPiecesMax ||
      head.opcode > std::to_underlying(Kind::unbind_windows) ||
      (head.slot >= kPairCallsMax && head.slot != PairCalls::kNoSlot)) {
    return blame("it calls in a way that no library of ours does");
  }
  PairCall call;
  std::memcpy(&call, taken.body.data(), sizeof call);
  std::array<MemoryPiece, kMemoryPiecesMax> pieces;
  const auto rest = taken.body.subspan(sizeof call);
  if (!rest.empty()) std::memcpy(pieces.data(), rest.data(), rest.size());
  carry_out(static_cast<Kind>(head.opcode), {call, std::span(pieces).first(rest.size() / sizeof(MemoryPiece))},
            head.slot);
}

void ApplicationPairs::carry_out(Kind kind, const TakenCall& taken, std::uint16_t slot) {
  const PairCall& call = taken.call;
  switch (kind) {
    case Kind::open_pair:
      return answer(slot, call.number, open_pair(call));
    case Kind::pair_facts:
      return answer(slot, call.number, pair_facts(call));
    case Kind::open_queue:
      return answer(slot, call.number, open_queue(call));
    case Kind::close_queue:
      return answer(slot, call.number, close_queue(call));
    case Kind::change_queue:
      return answer(slot, call.number, change_queue(call));
    case Kind::queue_facts:
      return answer(slot, call.number, queue_facts(call));
    case Kind::add_region:
      return answer(slot, call.number, add_region(taken));
    case Kind::add_window:
      return answer(slot, call.number, add_window(call));
    case Kind::remove_window:
      return answer(slot, call.number, remove_window(call));
    case Kind::unbind_windows:
      return answer(slot, call.number, unbind_windows(call));
    case Kind::close_pair:
    case Kind::change_pair:
    case Kind::fail_pair:
    case Kind::change_region:
    case Kind::remove_region:
      break;
  }
  if (endings_.size() >= kEndingsMax)
    return answer(slot, call.number, refused(Status::again, "too many calls at once"));
  OwnRegion before;
  auto begun = begin(kind, taken, before);
  if (!begun) return answer(slot, call.number, std::unexpected(std::move(begun.error())));
  endings_.push_back({kind, call, slot, std::move(*begun), std::move(before)});
}

// An application that lets no slot come free gets no answer, and nobody else waits for it.
void ApplicationPairs::answer(std::uint16_t slot, std::uint64_t number, const Result<PairAnswer>& with) {
  if (slot == PairCalls::kNoSlot) return;
  PairReply& reply = page().replies[slot];
  PairAnswer answer;
  if (with) {
    answer = *with;
  } else {
    answer.status = static_cast<std::uint32_t>(with.error().status);
    answer.system_errno = with.error().system_errno;
    const std::string& text = with.error().message;
    text.copy(answer.text.data(), answer.text.size() - 1);
  }
  reply.answer = answer;
  reply.answered.store(number, std::memory_order_release);
  has_answered_ = true;
}

// Queue pairs --------------------------------------------------------------------------------------------------------

bool ApplicationPairs::has_room_for(std::uint64_t completions) const {
  return stream_->capacity() >= completions_ + completions ||
         stream_->grow(static_cast<std::uint32_t>(completions_ + completions));
}

Result<PairAnswer> ApplicationPairs::open_pair(const PairCall& call) {
  if (!is_possible(call)) return senseless("a queue pair");
  if (pairs_.size() >= quota_.pairs) {
    return refused(
        Status::no_memory,
        fmt::format("this process has {} queue pairs at the host engine, the most one may have", quota_.pairs));
  }
  OwnQueue* const queue = call.shares_receives != 0 ? find_queue(call.queue, call.queue_generation) : nullptr;
  if (call.shares_receives != 0 && queue == nullptr) return stale("shared receive queue");
  const std::uint64_t bytes = bytes_of(call);
  if (queue_bytes_ + bytes > quota_.queue_bytes) {
    return refused(Status::no_memory,
                   fmt::format("queue pair: {} bytes for what is posted, besides {} of this process: the host engine "
                               "gives one {}; ask for fewer requests, pieces or inline bytes",
                               bytes, queue_bytes_, quota_.queue_bytes));
  }
  const std::uint32_t completions = call.max_send_wr + (queue != nullptr ? 0 : call.max_recv_wr);
  if (!has_room_for(completions)) return refused(Status::no_memory, "queue pair: the host engine has no memory for it");
  const std::uint32_t domain = domains_.enter(call.domain);
  const auto opened = core_.open_pair({.type = static_cast<QpType>(call.type),
                                       .capacity = {.max_send_wr = call.max_send_wr,
                                                    .max_recv_wr = call.max_recv_wr,
                                                    .max_send_sge = call.max_send_sge,
                                                    .max_recv_sge = call.max_recv_sge,
                                                    .max_inline = call.max_inline},
                                       .signals_all = call.signals_all != 0,
                                       .domain = domain,
                                       .send_stream = stream_,
                                       .receive_stream = stream_,
                                       .shared_receives = queue != nullptr ? queue->handle : qp::ReceiveQueueHandle{},
                                       .has_shared_receives = queue != nullptr,
                                       .events = notices_,
                                       .cookie = ++cookies_});
  if (!opened) {
    domains_.leave(call.domain);
    return std::unexpected(opened.error());
  }
  OwnPair pair{.handle = opened->handle,
               .type = static_cast<QpType>(call.type),
               .incarnation = call.incarnation,
               .domain = call.domain,
               .queue = {},
               .bytes = bytes,
               .completions = completions,
               .cookie = cookies_};
  if (queue != nullptr) {
    pair.queue = call.queue;
    ++queue->users;
  }
  queue_bytes_ += bytes;
  completions_ += completions;
  pairs_.emplace(opened->handle.index, pair);
  pairs_by_cookie_.emplace(pair.cookie, opened->handle.index);
  PairAnswer answer;
  answer.object = opened->handle.index;
  answer.generation = opened->handle.generation;
  answer.number = opened->number;
  return answer;
}

Result<PairAnswer> ApplicationPairs::pair_facts(const PairCall& call) {
  const OwnPair* const pair = find(call.object, call.generation);
  if (pair == nullptr) return stale("queue pair");
  PairAnswer answer;
  answer.attributes = to_plain(core_.pair_facts(pair->handle).attributes);
  return answer;
}

// What waits ---------------------------------------------------------------------------------------------------------

/// `region`: what it was before, if it is one's.
Result<qp::Withdrawal> ApplicationPairs::begin(Kind kind, const TakenCall& taken, OwnRegion& region) {
  const PairCall& call = taken.call;
  switch (kind) {
    case Kind::close_pair: {
      OwnPair* const pair = find(call.object, call.generation);
      if (pair == nullptr) return stale("queue pair");
      pair->is_ending = true;
      return core_.begin_close_pair(pair->handle);
    }
    case Kind::change_pair:
      return begin_change_pair(call);
    case Kind::fail_pair:
      return begin_fail_pair(call);
    case Kind::change_region:
      return begin_change_region(taken, region);
    default:
      return begin_remove_region(call, region);
  }
}

Result<qp::Withdrawal> ApplicationPairs::begin_change_pair(const PairCall& call) {
  OwnPair* const pair = find(call.object, call.generation);
  if (pair == nullptr) return stale("queue pair");
  const auto attributes = from_plain(call.attributes);
  if (!attributes || call.from > std::to_underlying(QpState::err)) return senseless("a change of a queue pair");
  const auto from = static_cast<QpState>(call.from);
  if (!is_legal(pair->type, from, attributes->state)) return senseless("a change of a queue pair");
  if (pair->is_resetting) return refused(Status::again, "queue pair: its reset is not over yet");
  qp::Withdrawal withdrawal;
  const Status status = core_.begin_change_pair(pair->handle, from, *attributes, withdrawal);
  if (status != Status::ok) return refused(status, "queue pair: its state has changed meanwhile");
  if (attributes->state == QpState::reset) {
    pair->incarnation = call.incarnation;
    pair->is_resetting = true;
  }
  return withdrawal;
}

Result<qp::Withdrawal> ApplicationPairs::begin_fail_pair(const PairCall& call) {
  const OwnPair* const pair = find(call.object, call.generation);
  if (pair == nullptr) return stale("queue pair");
  verbs::QpAttributes attributes = core_.pair_facts(pair->handle).attributes;
  const QpState from = std::exchange(attributes.state, QpState::err);
  qp::Withdrawal withdrawal;
  if (is_legal(pair->type, from, QpState::err)) core_.begin_change_pair(pair->handle, from, attributes, withdrawal);
  return withdrawal;
}

/// True if anything is over.
bool ApplicationPairs::end_endings() {
  return std::erase_if(endings_, [&](Ending& ending) {
           if (!core_.is_over(ending.withdrawal)) return false;
           finish(ending);
           return true;
         }) > 0;
}

void ApplicationPairs::finish(const Ending& ending) {
  if (ending.kind == Kind::close_pair) {
    const auto found = pairs_.find(ending.call.object);
    const OwnPair& pair = found->second;
    if (pair.queue) --queues_[*pair.queue].users;
    queue_bytes_ -= pair.bytes;
    completions_ -= pair.completions;
    domains_.leave(pair.domain);
    pairs_by_cookie_.erase(pair.cookie);
    pairs_.erase(found);
  }
  if (ending.kind == Kind::change_pair)
    if (OwnPair* const pair = find(ending.call.object, ending.call.generation); pair != nullptr)
      pair->is_resetting = false;
  joined_pieces_ -= ending.region.pieces;
  joined_bytes_ -= ending.region.bytes;
  answer(ending.slot, ending.call.number, PairAnswer{});
}

// Receive queues -----------------------------------------------------------------------------------------------------

Result<PairAnswer> ApplicationPairs::open_queue(const PairCall& call) {
  if (call.depth == 0 || call.depth > kLimits.max_srq_wr || call.pieces > kLimits.max_srq_sge ||
      call.limit > call.depth)
    return senseless("a shared receive queue");
  auto free = std::ranges::find(queues_, false, &OwnQueue::is_open);
  if (free == queues_.end() && queues_.size() >= kReceiveQueuesMax) {
    return refused(Status::no_memory,
                   fmt::format("this process has {} shared receive queues at the host engine, the most one may have",
                               kReceiveQueuesMax));
  }
  const std::uint64_t bytes = bytes_of_receives(call.depth, call.pieces);
  if (queue_bytes_ + bytes > quota_.queue_bytes || !has_room_for(2 * call.depth)) {
    return refused(
        Status::no_memory,
        fmt::format("shared receive queue: {} bytes for what is posted, besides {} of this process: the host "
                    "engine gives one {}",
                    bytes, queue_bytes_, quota_.queue_bytes));
  }
  if (free == queues_.end()) free = queues_.emplace(queues_.end());
  const auto slot = static_cast<std::uint32_t>(free - queues_.begin());
  const std::uint32_t domain = domains_.enter(call.domain);
  const auto opened = core_.open_receive_queue({.depth = call.depth,
                                                .sges = std::max(call.pieces, 1U),
                                                .domain = domain,
                                                .limit = call.limit,
                                                .events = notices_,
                                                .cookie = kQueueCookie | slot});
  if (!opened) {
    domains_.leave(call.domain);
    return std::unexpected(opened.error());
  }
  *free = {.handle = *opened,
           .generation = free->generation + 1,
           .domain = call.domain,
           .depth = call.depth,
           .pieces = std::max(call.pieces, 1U),
           .is_open = true};
  queue_bytes_ += bytes;
  completions_ += 2 * std::uint64_t{call.depth};
  page().taken[slot].store(0, std::memory_order_release);
  PairAnswer answer;
  answer.object = slot;
  answer.generation = free->generation;
  return answer;
}

Result<PairAnswer> ApplicationPairs::close_queue(const PairCall& call) {
  OwnQueue* const queue = find_queue(call.object, call.generation);
  if (queue == nullptr) return stale("shared receive queue");
  const Status status = core_.close_receive_queue(queue->handle);
  if (status != Status::ok) return refused(status, "shared receive queue: queue pairs use it");
  queue->is_open = false;
  queue_bytes_ -= bytes_of_receives(queue->depth, queue->pieces);
  completions_ -= 2 * std::uint64_t{queue->depth};
  domains_.leave(queue->domain);
  return PairAnswer{};
}

Result<PairAnswer> ApplicationPairs::change_queue(const PairCall& call) {
  OwnQueue* const queue = find_queue(call.object, call.generation);
  if (queue == nullptr) return stale("shared receive queue");
  if (call.depth == 0 || call.depth > kLimits.max_srq_wr || call.limit > call.depth)
    return senseless("a change of a shared receive queue");
  const std::uint64_t before = bytes_of_receives(queue->depth, queue->pieces),
                      after = bytes_of_receives(call.depth, queue->pieces);
  if (queue_bytes_ - before + after > quota_.queue_bytes || !has_room_for(2 * call.depth)) {
    return refused(Status::no_memory, fmt::format("shared receive queue: the host engine gives a process {} bytes for "
                                                  "what is posted",
                                                  quota_.queue_bytes));
  }
  const Status status = core_.change_receive_queue(queue->handle, call.depth, call.limit);
  if (status != Status::ok) return refused(status, "shared receive queue: more are posted than it shall hold");
  queue_bytes_ = queue_bytes_ - before + after;
  completions_ = completions_ - 2 * std::uint64_t{queue->depth} + 2 * std::uint64_t{call.depth};
  queue->depth = call.depth;
  return PairAnswer{};
}

Result<PairAnswer> ApplicationPairs::queue_facts(const PairCall& call) {
  const OwnQueue* const queue = find_queue(call.object, call.generation);
  if (queue == nullptr) return stale("shared receive queue");
  const qp::ReceiveQueueFacts facts = core_.receive_queue_facts(queue->handle);
  PairAnswer answer;
  answer.depth = facts.depth;
  answer.limit = facts.limit;
  answer.posted = facts.posted;
  return answer;
}

// Memory -------------------------------------------------------------------------------------------------------------

/// `region` gets what it needs.
Result<qp::RegionPlan> ApplicationPairs::plan_of(const TakenCall& taken, OwnRegion& region) const {
  constexpr std::uint64_t kPage = 4096;
  const auto& [call, pieces] = taken;
  const bool is_joined = pieces.size() > 1;
  std::uint64_t bytes = 0;
  for (const MemoryPiece& piece : pieces) {
    if (piece.offset > memory_.bytes || piece.length == 0 || piece.length > memory_.bytes - piece.offset ||
        (is_joined && (piece.offset % kPage != 0 || piece.length % kPage != 0))) {
      return senseless("a memory region");
    }
    bytes += piece.length;
  }
  if (call.skipped > bytes || call.length > bytes - call.skipped || call.length == 0 || (call.access & ~kAccess) != 0)
    return senseless("a memory region");
  qp::RegionPlan plan{.base = memory_.regions.head() + pieces[0].offset + call.skipped,
                      .length = call.length,
                      .iova = call.iova,
                      .access = call.access,
                      .is_foreign = true};
  if (!is_joined) return plan;
  if (joined_pieces_ + pieces.size() > kJoinedPiecesMax) {
    return refused(Status::no_memory,
                   fmt::format("memory region of {} pieces: the host engine maps {} for one process; align regions to "
                               "pages, or allocate them by MemoryRegion::allocate()",
                               pieces.size(), kJoinedPiecesMax));
  }
  if (bytes > kRegisteredBytesMax - joined_bytes_) {
    return refused(Status::no_memory,
                   fmt::format("memory region of {} pieces and {} bytes, besides {} of such regions: the host engine "
                               "maps {} bytes for one process",
                               pieces.size(), bytes, joined_bytes_, kRegisteredBytesMax));
  }
  auto joined = JoinedMemory::map(memory_.file.get(), pieces);
  if (!joined) return std::unexpected(std::move(joined.error()));
  region.memory = std::move(*joined);
  region.pieces = static_cast<std::uint32_t>(pieces.size());
  region.bytes = bytes;
  plan.base = region.memory.begin() + call.skipped;
  return plan;
}

void ApplicationPairs::count_joined(const OwnRegion& region) {
  joined_pieces_ += region.pieces;
  joined_bytes_ += region.bytes;
}

Result<PairAnswer> ApplicationPairs::add_region(const TakenCall& taken) {
  if (regions_.size() >= kPairRegionsMax) {
    return refused(
        Status::no_memory,
        fmt::format("this process has {} memory regions at the host engine, the most one may have", kPairRegionsMax));
  }
  OwnRegion region{.domain = taken.call.domain, .memory = {}};
  auto plan = plan_of(taken, region);
  if (!plan) return std::unexpected(std::move(plan.error()));
  plan->domain = domains_.enter(region.domain);
  const auto key = core_.add_region(*plan);
  if (!key) {
    domains_.leave(region.domain);
    return std::unexpected(key.error());
  }
  count_joined(region);
  regions_.emplace(*key, std::move(region));
  PairAnswer answer;
  answer.key = *key;
  return answer;
}

Result<qp::Withdrawal> ApplicationPairs::begin_change_region(const TakenCall& taken, OwnRegion& before) {
  const auto found = regions_.find(taken.call.key);
  if (found == regions_.end()) return stale("memory region");
  OwnRegion region{.domain = taken.call.domain, .memory = {}};
  auto plan = plan_of(taken, region);
  if (!plan) return std::unexpected(std::move(plan.error()));
  plan->domain = domains_.enter(region.domain);
  qp::Withdrawal withdrawal;
  if (auto changed = core_.begin_change_region(taken.call.key, *plan, withdrawal); !changed) {
    domains_.leave(region.domain);
    return std::unexpected(std::move(changed.error()));
  }
  count_joined(region);
  before = std::exchange(found->second, std::move(region));
  domains_.leave(before.domain);
  return withdrawal;
}

Result<qp::Withdrawal> ApplicationPairs::begin_remove_region(const PairCall& call, OwnRegion& before) {
  const auto found = regions_.find(call.key);
  if (found == regions_.end()) return stale("memory region");
  qp::Withdrawal withdrawal;
  const Status status = core_.begin_remove_region(call.key, withdrawal);
  if (status != Status::ok) return refused(status, "memory region: windows are bound to it");
  before = std::move(found->second);
  domains_.leave(before.domain);
  regions_.erase(found);
  return withdrawal;
}

Result<PairAnswer> ApplicationPairs::add_window(const PairCall& call) {
  if (call.type != std::to_underlying(verbs::WindowType::type_1) &&
      call.type != std::to_underlying(verbs::WindowType::type_2))
    return senseless("a memory window");
  if (windows_.size() >= kPairWindowsMax) {
    return refused(
        Status::no_memory,
        fmt::format("this process has {} memory windows at the host engine, the most one may have", kPairWindowsMax));
  }
  const auto key = core_.add_window(static_cast<verbs::WindowType>(call.type), domains_.enter(call.domain));
  if (!key) {
    domains_.leave(call.domain);
    return std::unexpected(key.error());
  }
  windows_.emplace(*key, call.domain);
  PairAnswer answer;
  answer.key = *key;
  return answer;
}

Result<PairAnswer> ApplicationPairs::remove_window(const PairCall& call) {
  const auto window = windows_.find(call.key);
  if (window == windows_.end()) return stale("memory window");
  core_.remove_window(call.key);
  domains_.leave(window->second);
  windows_.erase(window);
  return PairAnswer{};
}

Result<PairAnswer> ApplicationPairs::unbind_windows(const PairCall& call) {
  if (!regions_.contains(call.key)) return stale("memory region");
  core_.unbind_windows(call.key);
  return PairAnswer{};
}

}  // namespace fairlead::host
