#pragma once
// The notice streams of an engine's APIs. Under the engine's lock.

#include <sys/eventfd.h>

#include <memory>
#include <vector>

#include "base/event_descriptor.hpp"
#include "qp/notice_stream.hpp"

namespace fairlead::qp {

class NoticeStreams {
 public:
  /// Returns the descriptor for a stream. Called without the lock.
  static Result<base::FileDescriptor> make_semaphore() {
    return base::open_event_descriptor("a completion channel", EFD_SEMAPHORE);
  }
  NoticeStream* open(base::FileDescriptor semaphore) {
    return all_.emplace_back(std::make_unique<NoticeStream>(std::move(semaphore))).get();
  }
  void close(const NoticeStream* stream) {
    std::erase_if(all_, [&](const auto& owned) { return owned.get() == stream; });
  }
  template <typename Visit>
  void for_each(Visit&& visit) {
    for (const auto& stream : all_) visit(*stream);
  }

 private:
  std::vector<std::unique_ptr<NoticeStream>> all_;
};

}  // namespace fairlead::qp
