#pragma once
// A line on standard error that is overwritten while a command runs.

#include <fairlead/time.hpp>

#include <string_view>

namespace fairlead::tools {

class LiveLine {
 public:
  explicit LiveLine(bool is_shown) : is_shown_(is_shown) {}
  LiveLine(const LiveLine&) = delete;
  LiveLine& operator=(const LiveLine&) = delete;
  ~LiveLine() { clear(); }

  static bool is_terminal();

  /// Returns whether the next text is due: four times a second.
  bool is_due(Instant now) const { return is_shown_ && now >= due_; }
  void show(std::string_view text, Instant now);
  void clear();

 private:
  bool is_shown_;
  bool is_dirty_ = false;
  Instant due_{};
};

}  // namespace fairlead::tools
