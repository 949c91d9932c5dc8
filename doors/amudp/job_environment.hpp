#pragma once
// The part of the console's environment that ranks receive (AMX_SPMDgetenvMaster).

#include <string>
#include <string_view>

namespace fairlead::amudp {

enum class EnvironmentFor { this_host, other_hosts };

/// Returns "NAME=value" strings, each 0-terminated. Ranks of this host get all of it; those that the console starts
/// inherit it anyway. Other hosts receive it over a network on which others may listen. They get only the variables for
/// AM-2 programs (AMUDP_, AMMPI_, AMX_, GASNET_, FAIRLEAD_) and those that AMUDP_PASSENV names. AMUDP_PASSENV is a list
/// with blanks or commas; "UPC_*" selects a prefix, "*" everything. The job's secret is never included.
std::string job_environment(EnvironmentFor reader);

}  // namespace fairlead::amudp
