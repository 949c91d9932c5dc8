#pragma once

#include <fairlead/net/transfer_machine.hpp>

#include <string>

namespace fairlead::tools {

/// Returns the status and what the machine knows of the host, for example "peer silent: no ack from 10.0.0.7:20480 for
/// 2.1 s (...)".
std::string describe_failure(const net::TransferMachine& machine, const net::EndPoint& peer, Status status);

/// Returns whether the program there may not run. Other causes are certain, or another.
bool is_program_missing(net::PeerProblem problem);

}  // namespace fairlead::tools
