// Names of enumeration values, for programs' output.
#include <array>
#include <span>

#include "doors/ibverbs/abi.hpp"
#include "verbs/status_texts.hpp"

namespace {

const char* name_of(std::span<const char* const> names, int value, const char* other) {
  return value >= 0 && static_cast<std::size_t>(value) < names.size() ? names[static_cast<std::size_t>(value)] : other;
}

constexpr std::array kNodeTypes{"unknown",           "InfiniBand channel adapter",
                                "InfiniBand switch", "InfiniBand router",
                                "iWARP NIC",         "usNIC",
                                "usNIC UDP",         "unspecified"};
constexpr std::array kPortStates{"PORT_NOP",   "PORT_DOWN",   "PORT_INIT",
                                 "PORT_ARMED", "PORT_ACTIVE", "PORT_ACTIVE_DEFER"};
constexpr std::array kEvents{"CQ error",
                             "local work queue catastrophic error",
                             "invalid request local work queue error",
                             "local access violation work queue error",
                             "communication established",
                             "send queue drained",
                             "path migrated",
                             "path migration request error",
                             "local catastrophic error",
                             "port active",
                             "port error",
                             "LID change",
                             "P_Key change",
                             "SM change",
                             "SRQ catastrophic error",
                             "SRQ limit reached",
                             "last WQE reached",
                             "client reregistration",
                             "GID table change",
                             "WQ fatal"};

}  // namespace

extern "C" {

const char* ibv_node_type_str(ibv_node_type node_type) {
  return name_of(kNodeTypes, node_type, "unknown");
}

const char* ibv_port_state_str(ibv_port_state port_state) {
  return name_of(kPortStates, port_state, "invalid state");
}

const char* ibv_event_type_str(ibv_event_type event) {
  return name_of(kEvents, event, "unknown");
}

const char* ibv_wc_status_str(ibv_wc_status status) {
  return name_of(fairlead::verbs::kStatusTexts, status, "unknown");
}
}
