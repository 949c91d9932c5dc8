#include "qp/notice_stream.hpp"

#include <sys/eventfd.h>

namespace fairlead::qp {

bool NoticeStream::produce(const Notice& notice) {
  if (notices_.produce(notice) != Status::ok) {
    lost_.fetch_add(1, std::memory_order_relaxed);
    return false;
  }
  ::eventfd_write(semaphore_.get(), 1);
  return true;
}

}  // namespace fairlead::qp
