#pragma once
// What queue pairs of each type can do, and which wish of a program this device does not fulfil.

#include <cstdint>
#include <optional>

#include "doors/ibverbs/abi.hpp"
#include "doors/ibverbs/absent.hpp"

namespace fairlead::ibverbs {

/// Returns the posting calls (IBV_QP_EX_WITH_*) of a queue pair of this type; 0 if there is no such type.
std::uint64_t operations_of(unsigned type);

/// Returns what the type asks for and this device lacks.
std::optional<Absent> absent_type(unsigned type);
/// Does the same for all attributes.
std::optional<Absent> absent_feature(const ibv_qp_init_attr_ex& attributes);

}  // namespace fairlead::ibverbs
