# Precompiled headers for builds that are made for one run (the sanitizers'). Not in the release build: there each
# file must compile with its own includes alone.
option(FAIRLEAD_PRECOMPILED_HEADERS "compile the most included headers once" OFF)

# All targets of a group are compiled with the same flags; the first one makes the headers that the others reuse.
function(fairlead_precompile target group)
  if(NOT FAIRLEAD_PRECOMPILED_HEADERS)
    return()
  endif()
  get_property(owner GLOBAL PROPERTY fairlead_precompiled_${group})
  if(owner)
    target_precompile_headers(${target} REUSE_FROM ${owner})
  else()
    target_precompile_headers(${target} PRIVATE ${ARGN} <fmt/format.h> <algorithm> <atomic> <chrono> <expected> <memory>
                              <span> <string> <unordered_map> <vector>)
    set_property(GLOBAL PROPERTY fairlead_precompiled_${group} ${target})
  endif()
endfunction()
