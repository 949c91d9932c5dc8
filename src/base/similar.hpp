#pragma once
// Finds what a misspelt name was meant to be.

#include <optional>
#include <span>
#include <string_view>

namespace fairlead::base {

/// Returns the known name most similar to `name`; nothing if none is similar. A known name is similar if at most a
/// third of `letters`, and one more, must be inserted, removed or replaced. The rest of a longer known name that `name`
/// abbreviates counts as one. Nothing resembles an empty name, or one longer
/// than 64 characters.
std::optional<std::string_view> most_similar(std::string_view name, std::span<const std::string_view> known,
                                             std::size_t letters);

}  // namespace fairlead::base
