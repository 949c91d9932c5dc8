#pragma once
// A descriptor that threads wake each other by.

#include <string_view>

#include <fairlead/error.hpp>

#include "base/file_descriptor.hpp"

namespace fairlead::base {

/// An eventfd with these flags, besides EFD_CLOEXEC. An error says whose it would have been: "the engine".
Result<FileDescriptor> open_event_descriptor(std::string_view whose, int flags);

}  // namespace fairlead::base
