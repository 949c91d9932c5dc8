#include <fairlead/am/handler.hpp>
#include <fairlead/net/event.hpp>

#include <iterator>
#include <utility>
#include <vector>

#include "tools/explain/word.hpp"

namespace fairlead::tools {
namespace {

constexpr std::string_view kRefusals[] = {"bad_arguments", "bad_entry",      "bad_tag",      "bad_handler",
                                          "bad_segment",   "bad_length",     "bad_endpoint", "congestion",
                                          "unreachable",   "reply_rejected", "left"};
static_assert(std::size(kRefusals) == std::to_underlying(am::Refusal::left));

// In the order of MachineState.
constexpr std::string_view kMachineStates[] = {
    "the machine was closed",
    "it was created, and not started yet",
    "it is starting",
    "it sends and receives",
    "it is stopping: queued operations end first",
    "it has stopped, and the program may close it",
    "it could not start: the event gives the cause; the program can only close it",
};
static_assert(std::size(kMachineStates) == std::to_underlying(net::MachineState::failed) + 1);

// In the order of MachineEvent::Kind.
constexpr Word kMachineEvents[] = {
    {"event of a transfer machine", 0, "error",
     "messages were dropped because no queued buffer could take them (no_buffer), or the host engine has ended "
     "(restarted)"},
    {"event of a transfer machine", 1, "state_change", "the machine has started, has stopped or has failed"},
    {"event of a transfer machine", 2, "diagnostic", "a line of text, for example on settings without effect"},
    {"event of a transfer machine", 3, "peer_gone",
     "an engine with end points of this machine is lost; its operations end with the event's status, and the next "
     "message connects anew"},
    {"event of a transfer machine", 4, "statistics", "a line of statistics that report_statistics() asked for"},
};
static_assert(std::size(kMachineEvents) == std::to_underlying(net::MachineEvent::Kind::statistics) + 1);

// The numbers are those of <amudp.h>.
constexpr Word kErrors[] = {
    {"code of AM-2", 0, "AM_OK", "it worked"},
    {"code of AM-2", 1, "AM_ERR_NOT_INIT", "AM_Init has not been called, or AM_Terminate has"},
    {"code of AM-2", 2, "AM_ERR_BAD_ARG", "an argument is invalid: set AMX_VerboseErrors to see a line that names it"},
    {"code of AM-2", 3, "AM_ERR_RESOURCE", "no memory, port or descriptor is free"},
    {"code of AM-2", 4, "AM_ERR_NOT_SENT", "the message was not sent"},
    {"code of AM-2", 5, "AM_ERR_IN_USE", "it is in use, or full just now: poll, then try again"},
};

}  // namespace

std::span<const Word> message_words() {
  static const std::vector<Word> words = [] {
    std::vector<Word> all;
    for (std::uint32_t i = 0; i < std::size(kMachineStates); ++i)
      all.push_back(
          {"state of a transfer machine", i, to_string(static_cast<net::MachineState>(i)), kMachineStates[i]});
    all.insert(all.end(), std::begin(kMachineEvents), std::end(kMachineEvents));
    for (std::uint32_t i = 0; i < std::size(kRefusals); ++i)
      all.push_back({"why an active message came back", i + 1, kRefusals[i], explain(static_cast<am::Refusal>(i + 1))});
    all.insert(all.end(), std::begin(kErrors), std::end(kErrors));
    return all;
  }();
  return words;
}

}  // namespace fairlead::tools
