#pragma once
// The words and numbers of the faces that programs print, each with its meaning.

#include <cstdint>
#include <span>
#include <string_view>

namespace fairlead::tools {

struct Word {
  std::string_view kind;  // "completion status", "queue pair state"
  std::uint32_t number = 0;
  std::string_view name;  // as in the header of the face, "IBV_WC_RETRY_EXC_ERR"; of a vendor_err its Cause, "no_ack"
  std::string_view sentence;
  std::string_view short_name{};  // "RTS" of IBV_QPS_RTS
};

/// Work completion statuses, vendor_err, asynchronous events, queue pair states.
std::span<const Word> verbs_words();

/// States of transfer machines, why active messages come back, and what calls of AM-2 answer.
std::span<const Word> message_words();

}  // namespace fairlead::tools
