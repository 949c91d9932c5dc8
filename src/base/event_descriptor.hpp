#pragma once
// A descriptor with which threads wake each other.

#include <string_view>

#include <fairlead/error.hpp>

#include "base/file_descriptor.hpp"

namespace fairlead::base {

/// Opens an eventfd with these flags and EFD_CLOEXEC. `whose` names the owner in error messages: "the engine".
Result<FileDescriptor> open_event_descriptor(std::string_view whose, int flags);

}  // namespace fairlead::base
