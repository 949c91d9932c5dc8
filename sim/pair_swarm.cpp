#include "sim/pair_swarm.hpp"

#include <algorithm>
#include <map>
#include <span>

#include "base/rare.hpp"
#include "sim/active_traffic.hpp"
#include "sim/liars.hpp"
#include "sim/pair_conversation.hpp"
#include "sim/unchecked_records.hpp"

namespace fairlead::sim {
namespace {

constexpr base::Duration kPairSilence = 40s, kPairsEndWithin = 120s;
constexpr std::uint32_t kConversationsMost = 6;

path::SimLink draw_pair_link(Random& random) {
  path::SimLink link;
  link.delay = random.between(1us, 300us);
  link.datagram_size_max = random.chance(0.5) ? 1472 : 8972;
  if (random.chance(0.6)) link.loss = random.share() * 0.08;
  if (random.chance(0.2)) link.loss_burst = 20;
  if (random.chance(0.4)) link.duplication = random.share() * 0.1;
  if (random.chance(0.3)) link.duplicate_delay = random.between(1us, 2s);
  if (random.chance(0.4)) link.reordering = random.share() * 0.3;
  if (random.chance(0.4)) link.reorder_delay = random.between(1us, 2ms);
  if (random.chance(0.3)) link.corruption = random.share() * 0.02;
  return link;
}

engine::EngineOptions draw_pair_options(Random& random) {
  engine::EngineOptions options;
  const auto set = [&](engine::Option option, std::uint64_t value) {
    ENSURE(options.set(option, value).has_value(), "an option out of range");
  };
  set(engine::Option::give_up_after, random.between(300, 2000));
  set(engine::Option::unreachable_after, random.between(200, 1000));
  if (random.chance(0.3)) set(engine::Option::early_max, 60'000);
  if (random.chance(0.3)) set(engine::Option::window_segments, 64);
  if (random.chance(0.3)) set(engine::Option::data_depth, 16);
  return options;
}

constexpr double kOnOneMachine = 0.35, kWithLiar = 0.5;  // of these
constexpr std::uint64_t kLiars = 0x11A2'5EED'0000'0003;

class PairSwarm {
 public:
  PairSwarm(std::uint64_t seed, Sabotage::Kind sabotage)
      : sabotage_(sabotage, kStrikesAt), random_(seed), rare_(random_.next()), network_(random_.next()) {
    if (random_.chance(0.5)) base::rare_branches = &rare_;
    usual_ = draw_pair_link(random_);
    options_ = draw_pair_options(random_);
    draw_machine(seed);
    draw_seals(seed);
    draw_replacements(seed);
    network_.set_default_link(usual_);
    hosts_.resize(random_.between(2, 4));
    for (std::uint32_t i = 0; i < hosts_.size(); ++i) {
      hosts_[i].number = i;
      hosts_[i].is_replaceable = replacements_ > 0;
      hosts_[i].is_sealed = is_sealed_;
      hosts_[i].start(network_, machine(), options_, random_);
    }
    shared_.now = kBegin;
    shared_.honest = static_cast<std::uint32_t>(hosts_.size());
    const auto conversations = static_cast<std::uint32_t>(random_.between(1, kConversationsMost));
    for (std::uint32_t i = 0; i < conversations; ++i) {
      const auto from = static_cast<std::uint32_t>(random_.below(hosts_.size()));
      auto to = static_cast<std::uint32_t>(random_.below(hosts_.size() - 1));
      if (to >= from) ++to;
      conversations_.emplace_back(shared_, findings_, i, from, to);
    }
    draw_liar(seed, conversations);
    if (random_.chance(0.4)) kills_ = 0.002;
    if (random_.chance(0.4)) partitions_ = 0.002;
    if (random_.chance(0.6)) active_ = random_.share();
    if (replacements_ > 0) active_ = 0;  // ports of active messages are not handed over
  }
  ~PairSwarm() { base::rare_branches = nullptr; }

  PairReport run() {
    const std::uint64_t rounds = random_.between(300, 2000);
    const auto pace = static_cast<std::uint64_t>(random_.between(2'000, 2'000'000));  // ns
    for (std::uint64_t round = 0; round < rounds && is_clean(); ++round) {
      run_for(base::Duration(static_cast<std::int64_t>(random_.below(2 * pace))));
      draw_faults();
      if (random_.chance(active_)) traffic_.send();
    }
    heal();
    shared_.is_ending = true;
    const base::Instant latest = shared_.now + kPairsEndWithin;
    while (is_clean() && shared_.now < latest && !is_over()) run_for(1ms);
    SIM_CHECK(findings_, is_over(), "not all conversations come to their end");
    run_for(kPairSilence);
    if (is_clean()) check_nothing_left();
    return report();
  }

 private:
  /// Uses a generator of its own, so that the rest of a seed's world does not change.
  void draw_machine(std::uint64_t seed) {
    Random draw(~seed);
    if (!draw.chance(kOnOneMachine)) return;
    machine_.emplace();
    const auto set = [&](engine::Option option, std::uint64_t value) {
      ENSURE(options_.set(option, value).has_value(), "an option out of range");
    };
    set(engine::Option::shm_ring, 64 << 10);
    set(engine::Option::shm_shared_max, draw.chance(0.5) ? 0 : 8 << 20);
    if (draw.chance(0.3)) set(engine::Option::shm_cma_max, 0);
    if (draw.chance(0.3)) set(engine::Option::shm_cma_awake_max, 1 << 20);
  }
  void draw_seals(std::uint64_t seed) {
    Random draw(seed ^ kSeals);
    is_sealed_ = draw.chance(0.35);
    if (is_sealed_ && draw.chance(0.7))
      ENSURE(options_.set(engine::Option::seal_rekey_bytes, 64 << 10).has_value(), "an option out of range");
  }
  void draw_replacements(std::uint64_t seed) {
    constexpr std::uint64_t kReplacements = 0x5EC0'4D11'FE00'0001;
    Random draw(seed ^ kReplacements);
    if (!machine_ && draw.chance(0.5)) replacements_ = 0.05;
  }
  void draw_liar(std::uint64_t seed, std::uint32_t index) {
    liar_draw_ = Random(seed ^ kLiars);
    Random& draw = liar_draw_;
    if (!machine_ || !draw.chance(kWithLiar)) return;
    const std::uint32_t number = shared_.honest;
    PairHost& liar = hosts_.emplace_back();
    liar.number = number;
    liar.is_sealed = is_sealed_;
    liar.start(network_, machine(), options_, draw);
    for (std::uint64_t left = draw.between(1, 3); left > 0; --left) {
      const auto honest = static_cast<std::uint32_t>(draw.below(number));
      const bool is_asked = draw.chance(0.5);
      conversations_.emplace_back(shared_, lies_, index++, is_asked ? honest : number, is_asked ? number : honest);
    }
    begin_lies();
  }
  bool has_liar() const { return hosts_.size() > shared_.honest; }
  /// Peers meet a liar that they have expelled again only in its next life.
  void begin_lies() {
    const base::Instant at = shared_.now + liar_draw_.between(1us, 10ms);
    liars_.begin(shared_.honest, at, at + 1s, liar_draw_.next(), liar_draw_.between(50us, 5ms));
  }
  std::vector<Liars::Process> processes() const {
    std::vector<Liars::Process> processes;
    for (const PairHost& host : hosts_) processes.push_back({host.engine.get()});
    return processes;
  }
  /// What a liar knows of the honest processes' queue pairs.
  PairSecrets secrets() const {
    PairSecrets secrets;
    for (const PairConversation& one : conversations_)
      if (one.is_honest()) one.betray(secrets);
    return secrets;
  }
  const Machine* machine() const { return machine_ ? &*machine_ : nullptr; }

  bool is_clean() const { return findings_.is_clean(); }
  bool is_over() const {
    return std::ranges::all_of(conversations_, [](const PairConversation& one) { return one.is_closed(); });
  }

  void run_for(base::Duration span) {
    const base::Instant end = shared_.now + span;
    while (is_clean()) {
      bool has_happened = false;
      base::Instant next = network_.next_event();
      for (PairHost& host : hosts_) {
        if (!host.is_up()) continue;
        if (machine_ && sabotage_.is(Sabotage::Kind::forgiven_liar)) skip_invalid_records(*host.engine->connections());
        has_happened |= host.engine->progress(shared_.now);
        liars_.check(host.number, host.engine.get(), findings_);
        if (++passes_ % kPassesBetweenChecks == 0) host.engine->check();
        host.engine->ports().notify_touched();
      }
      for (PairHost& host : hosts_) take(host);
      if (liars_.next_at() <= shared_.now) {
        liars_.turn(processes(), shared_.now, findings_, secrets());
        has_happened = true;
      }
      for (PairHost& host : hosts_) try_to_replace(host);
      for (PairConversation& one : conversations_) one.act();
      for (const PairHost& host : hosts_) {
        if (host.is_up()) next = std::min(next, host.engine->next_deadline());
        if (host.is_up() && host.is_being_replaced()) next = std::min(next, shared_.now + kBetweenReplacements);
      }
      while (!restarts_.empty() && restarts_.begin()->first <= shared_.now) {
        restart(restarts_.begin()->second);
        restarts_.erase(restarts_.begin());
        has_happened = true;
      }
      if (shared_.now >= healed_at_) heal_network();
      next = std::min(next, liars_.next_at());
      if (!restarts_.empty()) next = std::min(next, restarts_.begin()->first);
      for (const PairHost& host : hosts_) {
        if (machine_ && host.is_up() && !has_happened) has_happened = Machine::has_news(*host.engine);
      }
      if (has_happened) next = shared_.now + kPass;
      if (next > end) break;
      shared_.now = std::max(next, shared_.now + kPass);
      network_.advance(shared_.now);
    }
    shared_.now = std::max(shared_.now, end);
    network_.advance(shared_.now);
  }

  void take(PairHost& host) {
    if (!host.is_up()) return;
    verbs::WorkCompletion completions[64];
    const std::size_t count = host.stream->take(completions, 64, host.pairs().accounts());
    for (std::size_t i = 0; i < count; ++i) {
      for (PairConversation& one : conversations_) {
        if (one.take(host.number, completions[i])) break;
      }
    }
    while (host.notices->consume() != nullptr) {
    }
    if (!host.is_replaceable) traffic_.take(host);
  }

  /// Afterwards the host makes a pass, so it has to be seen as active.
  void try_to_replace(PairHost& host) {
    if (!host.is_up() || !host.is_being_replaced()) return;
    while (!host.stream->is_empty()) take(host);
    replaced_ += host.try_to_replace(sabotage_, shared_.now);
  }

  void draw_faults() {
    if (replacements_ > 0 && random_.chance(replacements_)) {
      PairHost& host = hosts_[random_.below(hosts_.size())];
      if (host.is_up() && !host.is_being_replaced()) host.begin_replacement(shared_.now + random_.between(1ms, 50ms));
    }
    if (random_.chance(kills_)) {
      PairHost& host = hosts_[random_.below(shared_.honest)];
      if (!host.is_up()) return;
      kill(host, random_);
      shared_.had_faults = true;
      ++killed_;
    }
    if (has_liar() && hosts_.back().is_up() && liar_draw_.chance(kLiarEnds)) kill(hosts_.back(), liar_draw_);
    if (random_.chance(partitions_) && healed_at_ == base::kNever) {
      path::SimLink nothing = usual_;
      nothing.loss = 1;
      network_.set_default_link(nothing);
      healed_at_ = shared_.now + random_.between(1ms, 5s);
      shared_.had_faults = true;
    }
  }

  void kill(PairHost& host, Random& random) {
    for (PairConversation& one : conversations_) one.on_death(host.number);
    host.kill();
    liars_.end(host.number);
    restarts_.emplace(shared_.now + random.between(1us, host.number < shared_.honest ? 1s : 10ms), host.number);
  }

  void heal_network() {
    network_.set_default_link(usual_);
    healed_at_ = base::kNever;
  }

  void restart(std::uint32_t number) {
    hosts_[number].start(network_, machine(), options_, random_);
    if (number == shared_.honest) begin_lies();
  }

  void heal() {
    heal_network();
    for (const auto& [at, number] : restarts_) restart(number);
    restarts_.clear();
  }

  void check_nothing_left() {
    traffic_.check_end();
    for (PairHost& host : std::span(hosts_).first(shared_.honest)) {
      const engine::EngineUse use = host.engine->use();
      SIM_CHECK(findings_, use.operations == 0 && use.placements == 0 && use.deferred == 0,
                "host {} is left with {} operations, {} placements, {} answers", host.number, use.operations,
                use.placements, use.deferred);
      const shm::Transport* const shm = std::as_const(*host.engine).shm_transport();
      SIM_CHECK(findings_, shm == nullptr || !shm->has_any(shm::Transport::Pendings::all),
                "host {}: messages are left for its machine", host.number);
      const link::LinkCounters& link = host.engine->link()->counters();
      SIM_CHECK(findings_, link.is_consistent() && link.messages_pending == 0 && link.segments_in_flight == 0,
                "host {}: the link is left with {} messages and {} segments in flight", host.number,
                link.messages_pending, link.segments_in_flight);
      SIM_CHECK(findings_, host.engine->next_deadline() == base::kNever, "host {} is idle, but wants a pass in {}",
                host.number, to_text(host.engine->next_deadline() - shared_.now));
      SIM_CHECK(findings_, host.pairs().counters().completions_lost == 0, "host {} lost completions", host.number);
    }
  }

  PairReport report() const {
    PairReport report{.finding = findings_.first(), .hash = trace_.hash(), .time = shared_.now - kBegin};
    for (const PairConversation& one : conversations_) {
      report.succeeded += one.succeeded();
      report.failed += one.failed();
      report.openings += one.openings();
    }
    for (const PairHost& host : hosts_) {
      if (host.is_up() && host.engine->connections() != nullptr)
        report.through_memory += std::as_const(*host.engine).shm_transport()->counters().messages_sent;
    }
    report.kills = killed_;
    report.replacements = replaced_;
    report.lies = liars_.told();
    report.liars_expelled = liars_.expelled();
    report.active_sent = traffic_.sent();
    report.active_answered = traffic_.answered();
    return report;
  }

  static constexpr base::Duration kPass = 500ns;
  static constexpr std::uint64_t kPassesBetweenChecks = 7;  // of all hosts
  static constexpr std::uint64_t kStrikesAt = 3;
  static constexpr double kLiarEnds = 0.02;                      // in a round
  static constexpr base::Duration kBetweenReplacements = 100us;  // between tries

  Sabotage sabotage_;

  Random random_;
  Findings findings_;
  Findings lies_;  // of conversations with a liar; they count for nothing
  Trace trace_{nullptr};
  base::RareBranches rare_;
  path::SimNetwork network_;
  path::SimLink usual_;
  engine::EngineOptions options_;
  std::optional<Machine> machine_;
  bool is_sealed_ = false;
  std::vector<PairHost> hosts_;
  PairShared shared_{hosts_, random_, findings_, trace_};
  std::deque<PairConversation> conversations_;
  ActiveTraffic traffic_{shared_};
  Random liar_draw_{0};
  Liars liars_;
  double kills_ = 0, partitions_ = 0, active_ = 0, replacements_ = 0;
  base::Instant healed_at_ = base::kNever;
  std::multimap<base::Instant, std::uint32_t> restarts_;
  std::uint64_t killed_ = 0, passes_ = 0, replaced_ = 0;
};

}  // namespace

bool has_pair_liar(std::uint64_t seed) {
  return Random(~seed).chance(kOnOneMachine) && Random(seed ^ kLiars).chance(kWithLiar);
}

PairReport run_pair_swarm(std::uint64_t seed, Sabotage::Kind sabotage) {
  return PairSwarm(seed, sabotage).run();
}

}  // namespace fairlead::sim
