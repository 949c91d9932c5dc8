#include "sim/pair_conversation.hpp"

#include <cstring>

namespace fairlead::sim {
namespace {

using verbs::QpState;
using verbs::SendOpcode;
using verbs::WcStatus;

constexpr base::Duration kPairPatience = 60s;
constexpr std::uint64_t kPairConnected = 20, kPairEnded = 21, kPairReceived = 22;

bool takes_receive(SendOpcode opcode) {
  return opcode == SendOpcode::send || opcode == SendOpcode::send_imm || opcode == SendOpcode::write_imm;
}

}  // namespace

PairConversation::PairConversation(PairShared& shared, Findings& findings, std::uint32_t index, std::uint32_t from,
                                   std::uint32_t to)
    : shared_(shared), findings_(findings), index_(index) {
  near_.host = from;
  far_.host = to;
  ENSURE((index + 1) * kSlice <= PairHost::kMemory, "no memory for conversation {}", index);
}

void PairConversation::act() {
  switch (state_) {
    case State::closed:
      if (!shared_.is_ending && shared_.now >= open_at_ && host(near_).is_up() && host(far_).is_up()) open();
      return;
    case State::open:
      // Each successful request must have been received, too, unless the receiver is gone.
      if (shared_.is_ending && pending_.empty() && (to_receive_.empty() || !far_.is_there)) return close();
      if (!shared_.is_ending) post();
      post_receive();
      break;
    case State::broken:
      if (pending_.empty()) return close();
      break;
    case State::closing:
      finish_close();
      break;
  }
  SIM_CHECK(findings_, (state_ != State::closing && pending_.empty()) || shared_.now - moved_at_ < kPairPatience,
            "conversation {} has stood still for {} with {} requests pending (state {})", index_,
            to_text(kPairPatience), pending_.size(), static_cast<int>(state_));
}

// Opening ------------------------------------------------------------------------------------------------------------

bool PairConversation::open_end(End& end) {
  PairHost& at = host(end);
  const Status status =
      at.pairs().open_pair({.type = verbs::QpType::rc,
                            .capacity = {.max_send_wr = 16, .max_recv_wr = 64, .max_send_sge = 2, .max_recv_sge = 2},
                            .domain = 1,
                            .send_stream = at.stream,
                            .receive_stream = at.stream,
                            .shared_receives = {},
                            .events = at.notices.get()},
                           end.handle, end.number);
  SIM_CHECK(findings_, status == Status::ok, "a queue pair does not open: {}", to_string(status));
  end.is_there = status == Status::ok;
  return end.is_there;
}

void PairConversation::connect(const End& end, const End& peer, std::uint32_t sq_psn, std::uint32_t rq_psn) {
  verbs::QpAttributes attributes;
  attributes.dest_qp_num = peer.number;
  attributes.sq_psn = sq_psn;
  attributes.rq_psn = rq_psn;
  attributes.access_flags = PairHost::kRights;
  attributes.av = {.dgid = address_of(peer.host).ip, .is_global = true};
  attributes.max_rd_atomic = attributes.max_dest_rd_atomic = 4;
  attributes.timeout = index_ % 2 == 0 ? 14 : 16;  // a lost peer is detected after half a second, or two
  attributes.retry_cnt = 7;
  attributes.rnr_retry = 7;
  attributes.min_rnr_timer = 6;
  for (const auto& [from, to] :
       {std::pair{QpState::reset, QpState::init}, {QpState::init, QpState::rtr}, {QpState::rtr, QpState::rts}}) {
    attributes.state = to;
    const Status status = host(end).pairs().change_pair(end.handle, from, attributes, shared_.now);
    SIM_CHECK(findings_, status == Status::ok, "a queue pair does not become ready: {}", to_string(status));
  }
}

void PairConversation::open() {
  if (!open_end(near_) || !open_end(far_)) return;
  const auto one = static_cast<std::uint32_t>(shared_.random.below(1 << 24));
  const auto other = static_cast<std::uint32_t>(shared_.random.below(1 << 24));
  connect(near_, far_, one, other);
  connect(far_, near_, other, one);
  psn_ = one;
  first_ = next_;
  shared_.trace.add(shared_.now, {kPairConnected, index_, near_.number, far_.number});
  counter_begin_ = counter_value();
  added_ = added_surely_ = 0;
  moved_at_ = shared_.now;
  state_ = State::open;
  ++openings_;
}

void PairConversation::betray(PairSecrets& secrets) const {
  if (state_ != State::open || !host(near_).is_up() || !host(far_).is_up()) return;
  const auto next = static_cast<std::uint32_t>(psn_ + next_ - first_);
  const auto oldest = static_cast<std::uint32_t>(next - pending_.size());
  const auto add = [&](const End& victim, const End& partner, std::uint32_t sequence) {
    secrets.push_back({.victim = address_of(victim.host),
                       .source = partner.number,
                       .target = victim.number,
                       .rkey = host(victim).key,
                       .sequence = sequence,
                       .address = host(victim).address(area(0)),
                       .bytes = kSlice});
  };
  add(far_, near_, oldest);
  add(near_, far_, oldest);
}

std::uint64_t PairConversation::counter_value() {
  std::uint64_t value = 0;
  std::memcpy(&value, host(far_).memory.data() + counter(), sizeof value);
  return value;
}

// Traffic ------------------------------------------------------------------------------------------------------------

void PairConversation::post() {
  Random& random = shared_.random;
  if (pending_.size() >= kAreas || next_ >= kRequestsMost || !random.chance(0.7)) return;
  PairHost &near = host(near_), &far = host(far_);  // the host may be in another life, or down
  Request request{.number = next_, .opcode = static_cast<SendOpcode>(random.below(7))};
  if (request.opcode == SendOpcode::compare_swap) request.opcode = SendOpcode::fetch_add;
  const bool is_atomic = request.opcode == SendOpcode::fetch_add, is_read = request.opcode == SendOpcode::read;
  request.size = static_cast<std::uint32_t>(is_atomic ? 8 : random.mostly_small(0, kArea));
  const std::size_t at = area(request.number);
  if (!is_atomic) {
    std::byte* source = (is_read ? far : near).memory.data() + at;
    for (std::uint32_t i = 0; i < request.size; ++i) source[i] = value(request.number, i);
    std::byte* target = (is_read ? near : far).memory.data() + at;
    std::memset(target, 0xAA, request.size);
  }
  const verbs::Sge sge{near.address(at), request.size, near.key};
  verbs::SendRequest posted{.id = request.number,
                            .opcode = request.opcode,
                            .flags = verbs::send_flags::signaled,
                            .imm = static_cast<std::uint32_t>(request.number),
                            .rkey = far.key,
                            .remote_addr = far.address(is_atomic ? counter() : at),
                            .compare_add = request.number + 1};
  posted.sges = {&sge, request.size == 0 ? 0U : 1U};
  if (random.chance(0.2)) posted.flags |= verbs::send_flags::fence;
  std::size_t taken = 0;
  const int code = near.pairs().post_send(near_.handle, {&posted, 1}, taken, shared_.now);
  SIM_CHECK(findings_, code == 0, "conversation {}: a request was refused: {}", index_, code);
  if (code != 0) return;
  if (pending_.empty()) moved_at_ = shared_.now;
  ++next_;
  pending_.push_back(request);
  if (is_atomic) added_ += posted.compare_add;
  if (takes_receive(request.opcode)) to_receive_.push_back(request);
}

// Often late, so that the receiver sends RNR NAKs.
void PairConversation::post_receive() {
  PairHost& far = host(far_);
  if (!far_.is_there || receives_ >= to_receive_.size() || !shared_.random.chance(0.5)) return;
  const Request& request = to_receive_[receives_];
  const verbs::Sge sge{far.address(area(request.number)), kArea, far.key};
  const verbs::ReceiveRequest posted{.id = request.number, .sges = {&sge, 1}};
  std::size_t taken = 0;
  if (far.pairs().post_receive(far_.handle, {&posted, 1}, taken) == 0) ++receives_;
}

bool PairConversation::take(std::uint32_t at, const verbs::WorkCompletion& completion) {
  if (state_ == State::closed) return false;
  if (near_.is_there && at == near_.host && completion.qp_num == near_.number) {
    on_end(completion);
    return true;
  }
  if (far_.is_there && at == far_.host && completion.qp_num == far_.number) {
    on_receive(completion);
    return true;
  }
  return false;
}

void PairConversation::on_end(const verbs::WorkCompletion& completion) {
  moved_at_ = shared_.now;
  shared_.trace.add(shared_.now, {kPairEnded, index_, completion.wr_id, static_cast<std::uint64_t>(completion.status)});
  if (pending_.empty() || pending_.front().number != completion.wr_id) {
    return findings_.add("conversation {}: request {} ended, which is not the oldest one", index_, completion.wr_id);
  }
  const Request request = pending_.front();
  pending_.pop_front();
  if (completion.status == WcStatus::success) {
    SIM_CHECK(findings_, state_ == State::open, "conversation {}: request {} ended well after one that failed", index_,
              request.number);
    ++succeeded_;
    return check_effect(request);
  }
  ++failed_;
  SIM_CHECK(findings_, shared_.had_faults || shared_.has_lost(near_.host, far_.host),
            "conversation {}: request {} failed, status {}, and nothing excuses it", index_, request.number,
            static_cast<int>(completion.status));
  if (state_ == State::open) state_ = State::broken;
}

void PairConversation::on_receive(const verbs::WorkCompletion& completion) {
  if (completion.status != WcStatus::success) return;  // flushed
  moved_at_ = shared_.now;
  shared_.trace.add(shared_.now, {kPairReceived, index_, completion.wr_id, completion.byte_len});
  if (receives_ == 0 || to_receive_.front().number != completion.wr_id) {
    return findings_.add("conversation {}: receive {} completed out of turn", index_, completion.wr_id);
  }
  const Request request = to_receive_.front();
  to_receive_.pop_front();
  --receives_;
  SIM_CHECK(findings_, completion.byte_len == request.size, "conversation {}: receive {} has {} bytes, {} were sent",
            index_, request.number, completion.byte_len, request.size);
  check_memory(host(far_), request);
}

void PairConversation::check_effect(const Request& request) {
  if (request.opcode == SendOpcode::fetch_add) {
    added_surely_ += request.number + 1;
    return;
  }
  if (request.opcode == SendOpcode::read) return check_memory(host(near_), request);
  if (takes_receive(request.opcode)) return;  // its receive has a completion of its own, which is checked
  check_memory(host(far_), request);
}

void PairConversation::check_memory(const PairHost& host, const Request& request) {
  for (std::uint32_t i = 0; i < request.size; ++i) {
    if (host.memory[area(request.number) + i] == value(request.number, i)) continue;
    return findings_.add("conversation {}: byte {} of {} of request {} is wrong at host {}", index_, i, request.size,
                         request.number, host.number);
  }
}

// Ends ---------------------------------------------------------------------------------------------------------------

void PairConversation::on_death(std::uint32_t dead) {
  if (state_ == State::closed) return;
  if (dead == far_.host) far_.is_there = false;
  if (dead != near_.host) return;
  near_.is_there = false;
  pending_.clear();
  if (state_ != State::closing) close();
}

void PairConversation::close() {
  for (const End* end : {&near_, &far_}) {
    if (end->is_there) host(*end).pairs().begin_close(end->handle, shared_.now);
  }
  moved_at_ = shared_.now;
  state_ = State::closing;
}

void PairConversation::finish_close() {
  for (End* end : {&near_, &far_}) {
    if (!end->is_there || !host(*end).pairs().is_quiet(end->handle)) continue;
    host(*end).pairs().free_pair(end->handle);
    end->is_there = false;
  }
  if (near_.is_there || far_.is_there) return;
  const std::uint64_t added = counter_value() - counter_begin_;
  SIM_CHECK(findings_, added >= added_surely_ && added <= added_,
            "conversation {}: {} was added, at least {} and at most {} should be", index_, added, added_surely_,
            added_);
  pending_.clear();
  to_receive_.clear();
  receives_ = 0;
  open_at_ = shared_.now + shared_.random.between(0ms, 50ms);
  state_ = State::closed;
}

}  // namespace fairlead::sim
