#pragma once
// The words and numbers that programs print for the public interfaces, each with its meaning.

#include <cstdint>
#include <span>
#include <string_view>

namespace fairlead::tools {

struct Word {
  std::string_view kind;  // "completion status", "queue pair state"
  std::uint32_t number = 0;
  std::string_view name;  // as in the interface's header, "IBV_WC_RETRY_EXC_ERR"; for a vendor_err its Cause, "no_ack"
  std::string_view sentence;
  std::string_view short_name{};  // for example "RTS" of IBV_QPS_RTS
  std::string_view text{};        // that programs print for it: "RNR retry counter exceeded"
};

/// Returns work completion statuses, vendor_err values, asynchronous events and queue pair states.
std::span<const Word> verbs_words();

/// Returns the events of librdmacm, and the reasons of its rejections.
std::span<const Word> manager_words();

/// Returns states and events of transfer machines, reasons why active messages return, and AM-2 codes.
std::span<const Word> message_words();

}  // namespace fairlead::tools
