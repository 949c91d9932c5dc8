#pragma once
// What ranks are told of the console's environment (AMX_SPMDgetenvMaster).

#include <string>
#include <string_view>

namespace fairlead::amudp {

enum class EnvironmentFor { this_host, other_hosts };

/// "NAME=value", each with a zero behind it. Ranks of this host get all of it: those that the console starts have it
/// anyway. Other hosts are told over a network that anybody may listen to: only what is for AM-2 programs (AMUDP_,
/// AMMPI_, AMX_, GASNET_, FAIRLEAD_), and what AMUDP_PASSENV names: names separated by blanks or commas, "UPC_*" for
/// all that begin so, "*" for everything. Nobody is told the job's secret.
std::string job_environment(EnvironmentFor reader);

}  // namespace fairlead::amudp
