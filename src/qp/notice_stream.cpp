#include "qp/notice_stream.hpp"

#include <sys/eventfd.h>
#include <sys/uio.h>

namespace fairlead::qp {

bool NoticeStream::produce(const Notice& notice) {
  if (notices_.produce(notice) != Status::ok) {
    lost_.fetch_add(1, std::memory_order_relaxed);
    return false;
  }
  ::eventfd_write(semaphore_.get(), 1);
  return true;
}

bool NoticeStream::take_back() {
  eventfd_t one = 0;
  const iovec to{&one, sizeof one};
  return ::preadv2(semaphore_.get(), &to, 1, -1, RWF_NOWAIT) == sizeof one;
}

}  // namespace fairlead::qp
