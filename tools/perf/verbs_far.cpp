// The far side of a measurement of queue pairs.
#include <nlohmann/json.hpp>

#include "tools/perf/far_end.hpp"
#include "tools/perf/verbs_end.hpp"

namespace fairlead::tools {
namespace {

/// The far side of round trips: returns each send or write.
class VerbsEcho {
 public:
  VerbsEcho(VerbsEnd& end, const PerfPlan& plan, std::uint64_t size)
      : end_(end), plan_(plan), size_(size), answered_(end.received()), last_(end.arrived(size)) {}

  bool turn() {
    if (plan_.op != VerbsOp::send) return plan_.op == VerbsOp::write && !plan_.is_stream ? answer_write() : end_.reap();
    if (!end_.reap_receives()) return false;
    if (plan_.is_stream) return true;
    for (; answered_ < end_.received(); ++answered_) {
      if (end_.request(VerbsOp::send, size_) != 0 || !end_.reap()) return false;
    }
    return true;
  }

 private:
  bool answer_write() {
    for (int i = 0; i < kVerbsLooksPerReap; ++i) {
      const std::uint8_t number = end_.arrived(size_);
      if (number == last_) continue;
      last_ = number;
      end_.stamp(size_, number);
      return end_.request(VerbsOp::write, size_) == 0 && end_.reap();
    }
    return end_.reap();
  }

  VerbsEnd& end_;
  const PerfPlan& plan_;
  std::uint64_t size_, answered_;
  std::uint8_t last_;
};

class FarVerbs : public PerfFarEnd {
 public:
  FarVerbs(std::unique_ptr<VerbsEnd> end, const PerfPlan& plan) : end_(std::move(end)), plan_(plan) {}

  std::string at() const override { return end_->at(); }
  Result<> meet(std::string_view near) override { return end_->meet(near); }

  Result<PerfOutcome> play(const PerfCommand& command, PerfControl& control) override {
    if (command.size > plan_.size_max) return std::unexpected(Error{Status::invalid, 0, "a size beyond the plan's"});
    VerbsEcho echo(*end_, plan_, command.size);
    bool is_well = control.send(perf_message_ready());
    if (is_well) serve_until_told(control, [&] { is_well = is_well && echo.turn(); });
    if (!is_well) return std::unexpected(end_->failure());
    return PerfOutcome{};
  }

 private:
  std::unique_ptr<VerbsEnd> end_;
  PerfPlan plan_;
};

}  // namespace

Result<std::unique_ptr<PerfFarEnd>> open_far_verbs(const PerfPlace& place, const PerfPlan& plan) {
  auto end = VerbsEnd::open(place, plan);
  if (!end) return std::unexpected(std::move(end.error()));
  return std::make_unique<FarVerbs>(std::move(*end), plan);
}

}  // namespace fairlead::tools
