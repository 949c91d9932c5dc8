#pragma once
// The numbers that programs written for libibverbs print: work completion statuses, vendor_err, asynchronous events.

#include <cstdint>
#include <span>
#include <string_view>

namespace fairlead::tools {

struct VerbsWord {
  std::string_view kind;  // "completion status", "vendor_err", "asynchronous event"
  std::uint32_t number = 0;
  std::string_view name;  // as in <infiniband/verbs.h>, "IBV_WC_RETRY_EXC_ERR"; of a vendor_err its Cause, "no_ack"
  std::string_view sentence;
};

std::span<const VerbsWord> verbs_words();

}  // namespace fairlead::tools
