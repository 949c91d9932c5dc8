#include "sim/host.hpp"

#include <algorithm>
#include <limits>
#include <utility>

#include "base/ensure.hpp"
#include "engine/handover.hpp"
#include "link/token_source.hpp"
#include "sim/addresses.hpp"
#include "sim/replacement.hpp"
#include "sim/seals.hpp"
#include "sim/unchecked_records.hpp"

namespace fairlead::sim {
namespace {

constexpr std::uint64_t kStarted = 6, kKilled = 7;
constexpr std::uint32_t kPassesInVainMax = 1000;
constexpr std::uint32_t kSequencesBeforeWrap = 20'000;
constexpr base::Duration kBetweenTries = 1ms;  // between attempts at a replacement
constexpr int kSeedsTriedMax = 10'000'000;

// Searches a seed with which the link's first session begins shortly before the highest sequence number. This relies on
// the order of the link's random draws; WatchedPath::has_wrapped() tells whether it still works.
std::uint64_t seed_before_wrap(Random& random, std::uint64_t epoch) {
  for (int tried = 0; tried < kSeedsTriedMax; ++tried) {
    const std::uint64_t seed = random.next();
    const std::uint64_t life = link::TokenSource(~seed, epoch).next();  // as the link draws it
    link::TokenSource numbers(link::TokenSource(seed, epoch).next(), life);
    numbers.next();
    if (static_cast<std::uint32_t>(numbers.next()) > std::numeric_limits<std::uint32_t>::max() - kSequencesBeforeWrap)
      return seed;
  }
  return random.next();
}

}  // namespace

Host::Host(std::uint32_t number, const HostPlan& plan, path::SimNetwork& network, const Machine* machine, Shared shared,
           std::uint64_t seed)
    : number_(number), plan_(plan), network_(network), machine_(machine), shared_(shared), random_(seed) {
  if (shared.scenario.has_clock_offsets) clock_offset_ = random_.between(0h, 24h * 365 * 10);
  network_.set_downlink(address_of(number_), plan_.downlink);
}

void Host::start(base::Instant now) {
  auto path = network_.attach(address_of(number_), {plan_.receive_buffer_bytes, plan_.merges_arrivals});
  ENSURE(path.has_value(), "host {}: {}", number_, path.error().message);
  auto watched = std::make_unique<WatchedPath>(std::move(*path), number_, clock_offset_, shared_.trace,
                                               shared_.findings, shared_.sabotage);
  path_ = watched.get();
  const std::uint64_t epoch = random_.next();
  const std::uint64_t seed = plan_.starts_before_wrap ? seed_before_wrap(random_, epoch) : random_.next();
  shared_.trace.add(now, {kStarted, number_, epoch});
  shared_.trace.say(now, "h{}        starts", number_);
  std::optional<link::SealSettings> seals;
  if (shared_.scenario.seals != Seals::none) seals = seals_of(shared_.scenario, number_, random_.next());
  auto shm = machine_ != nullptr ? machine_->open_shm(address_of(number_), epoch, shared_.scenario.options) : nullptr;
  engine_ = std::make_unique<engine::Engine>(std::move(watched), address_of(number_), shared_.scenario.options, epoch,
                                             seed, std::move(shm), std::move(seals));
  application_ = std::make_unique<Application>(Application::Life{number_, ++lives_, clock_offset_, now, random_.next()},
                                               plan_, *engine_, *path_, shared_);
  began_ = now;
  paused_until_ = pass_not_before_ = look_not_before_ = now;
  application_->begin(now);
  plan_next(now);
}

void Host::take_leave(base::Instant now) {
  shared_.trace.say(now, "h{}        takes its leave", number_);
  engine_->farewell(now + clock_offset_);
}

void Host::kill(base::Instant now) {
  shared_.trace.add(now, {kKilled, number_});
  shared_.trace.say(now, "h{}        is killed", number_);
  application_->check_memory();
  replaced_by_ = base::kNever;
  shared_.ledger.bury(number_, application_->life().number);
  application_.reset();
  engine_.reset();
  is_armed_ = false;
  arm_at_ = base::kNever;
  path_ = nullptr;
  pass_at_ = next_turn_ = base::kNever;
}

void Host::pause(base::Instant until) {
  paused_until_ = std::max(paused_until_, until);
  if (is_up() && next_turn_ != base::kNever) next_turn_ = std::max(next_turn_, paused_until_);
}

void Host::replace(base::Instant until) {
  if (machine_ != nullptr) return;  // replacement does not support peers of the machine yet
  replaced_by_ = until;
  engine::Handover(*engine_).hold_answers(true);
}

void Host::try_to_replace(base::Instant now) {
  if (application_->has_events() && now < replaced_by_) return;
  std::optional<link::SealSettings> seals;
  if (shared_.scenario.seals != Seals::none) seals = seals_of(shared_.scenario, number_, random_.next());
  const Replaced replaced = application_->has_events()
                                ? Replaced::later
                                : sim::replace(*engine_, shared_.sabotage, now + clock_offset_, std::move(seals));
  if (replaced == Replaced::later && now < replaced_by_) return;
  replaced_by_ = base::kNever;
  if (replaced != Replaced::done) return engine::Handover(*engine_).hold_answers(false);
  application_->reserve_again();
  ++replacements_;
  shared_.trace.say(now, "h{}        has a new engine", number_);
}

void Host::on_network(base::Instant now) {
  if (is_up() && path_->has_arrivals()) wake(now);
}

void Host::on_doorbell(base::Instant now) {
  if (is_armed_ && Machine::is_rung(*engine_)) wake(now);
}

/// Returns the ring of a process of the same machine that has written to us; null if there is none.
shm::RingReader* Host::reader_with_record() {
  shm::Connections* const connections = engine_->connections();
  for (std::uint32_t slot = 0; connections != nullptr && slot < connections->peers().size(); ++slot) {
    shm::Connection& peer = connections->peer(slot);
    if (peer.state == shm::Connection::State::open && peer.reader.has_record()) return &peer.reader;
  }
  return nullptr;
}

bool Host::pass(base::Instant now) {
  if (shared_.sabotage.is(Sabotage::Kind::forgiven_liar)) skip_invalid_records(*engine_->connections());
  if (shared_.sabotage.is(Sabotage::Kind::overrun_record)) overrun_invalid_record(*engine_->connections());
  shm::RingReader* const reader = reader_with_record();
  if (reader != nullptr && shared_.sabotage.strikes(Sabotage::Kind::lost_record))
    reader->pass(reader->record()->body.size());
  if (reader == nullptr || !shared_.sabotage.strikes(Sabotage::Kind::repeated_record))
    return engine_->progress(now + clock_offset_);
  const shm::RingReader before = *reader;
  engine_->progress(now + clock_offset_);
  *reader = before;
  return true;
}

void Host::wake(base::Instant now) {
  const base::Instant woken = std::max(now + plan_.wake_time, pass_not_before_);
  if (woken >= pass_at_) return;
  pass_at_ = woken;
  next_turn_ = std::max(std::min(next_turn_, pass_at_), paused_until_);
}

void Host::on_submission(base::Instant now) {
  plan_next(now);
}

void Host::turn(base::Instant now) {
  if (arm_at_ <= now) {
    arm_at_ = base::kNever;
    is_armed_ = engine_->arm();
    if (!is_armed_) pass_at_ = std::min(pass_at_, std::max(now, pass_not_before_));  // there is work already
  }
  if (pass_at_ <= now) {
    const bool had_arrivals = path_->has_arrivals() || (is_armed_ && Machine::is_rung(*engine_));
    if (std::exchange(is_armed_, false)) engine_->disarm();
    const bool has_happened = pass(now);
    engine_->ports().notify_touched();
    pass_not_before_ = now + plan_.pass_time;
    // A pass must handle the timer for which it was requested.
    passes_in_vain_ = had_arrivals || has_happened ? 0 : passes_in_vain_ + 1;
    SIM_CHECK(shared_.findings, passes_in_vain_ < kPassesInVainMax,
              "host {} asked for {} passes in which nothing happened", number_, passes_in_vain_);
  }
  if (look_not_before_ <= now) {
    application_->look(plan_.events_per_look, now);
    look_not_before_ = now + plan_.look_every;
  }
  if (is_being_replaced()) try_to_replace(now);
  plan_next(now);
}

void Host::plan_next(base::Instant now) {
  const base::Instant deadline = engine_->next_deadline();
  pass_at_ = deadline == base::kNever ? base::kNever : std::max(deadline - clock_offset_, pass_not_before_);
  if (path_->has_arrivals()) pass_at_ = std::min(pass_at_, std::max(now, pass_not_before_));
  // Arms the doorbell as a thread does before it sleeps, some time after its last look. Others may have rung in
  // between.
  if (machine_ == nullptr || is_armed_) {
    arm_at_ = base::kNever;
  } else if (arm_at_ == base::kNever) {
    arm_at_ = now + plan_.pass_time;
  }
  const base::Instant wanted = application_->has_events() ? now : application_->next_cancel();
  const base::Instant look_at = wanted == base::kNever ? wanted : std::max(wanted, look_not_before_);
  next_turn_ = std::min({pass_at_, look_at, arm_at_});
  if (is_being_replaced()) next_turn_ = std::min(next_turn_, std::max(now + kBetweenTries, pass_not_before_));
  if (next_turn_ != base::kNever) next_turn_ = std::max(next_turn_, paused_until_);
}

std::uint64_t Host::bytes_delivered() const {
  const shm::Transport* const shm = std::as_const(*engine_).shm_transport();
  return engine_->link()->counters().message_bytes_delivered + (shm != nullptr ? shm->counters().bytes_delivered : 0);
}

}  // namespace fairlead::sim
