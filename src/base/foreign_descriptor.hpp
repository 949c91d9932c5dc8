#pragma once
// A descriptor that came from another process, or leads to one. If that process is not trusted, a SlowCloser closes it,
// since closing may block.

#include <utility>

#include "base/file_descriptor.hpp"
#include "base/slow_closer.hpp"

namespace fairlead::base {

class ForeignDescriptor {
 public:
  ForeignDescriptor() = default;
  /// `closer` has to outlive this object. Null: the descriptor is closed in place.
  ForeignDescriptor(FileDescriptor file, SlowCloser* closer) noexcept : file_(std::move(file)), closer_(closer) {}
  ForeignDescriptor(ForeignDescriptor&& other) noexcept = default;
  ForeignDescriptor& operator=(ForeignDescriptor&& other) noexcept {
    if (this != &other) {
      reset();
      file_ = std::move(other.file_);
      closer_ = other.closer_;
    }
    return *this;
  }
  ~ForeignDescriptor() { reset(); }

  bool is_open() const noexcept { return file_.is_open(); }
  int get() const noexcept { return file_.get(); }
  SlowCloser* closer() const noexcept { return closer_; }

  void reset() {
    if (closer_ != nullptr) closer_->close(std::move(file_));
    file_.reset();
  }

 private:
  FileDescriptor file_;
  SlowCloser* closer_ = nullptr;
};

}  // namespace fairlead::base
