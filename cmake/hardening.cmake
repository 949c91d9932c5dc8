# What packages are built with (preset `hardened`): calls that are checked for the size of their buffers, a standard library
# that checks its own conditions, guarded stacks, marked targets of jumps, and tables that are read-only once loaded.
option(FAIRLEAD_HARDENED "build with the checks that packages should have" OFF)
set(FAIRLEAD_HARDENED_FLAGS "")
if(FAIRLEAD_HARDENED)
  set(FAIRLEAD_HARDENED_FLAGS -U_FORTIFY_SOURCE -D_FORTIFY_SOURCE=3 -D_GLIBCXX_ASSERTIONS -fstack-protector-strong
                              -fstack-clash-protection)
  if(CMAKE_SYSTEM_PROCESSOR STREQUAL aarch64)
    list(APPEND FAIRLEAD_HARDENED_FLAGS -mbranch-protection=standard)
  else()
    list(APPEND FAIRLEAD_HARDENED_FLAGS -fcf-protection=full)
  endif()
  add_compile_options(${FAIRLEAD_HARDENED_FLAGS})
  add_link_options(-Wl,-z,relro,-z,now $<$<STREQUAL:$<TARGET_PROPERTY:TYPE>,EXECUTABLE>:-pie>)
endif()

# The binaries as they came out, and how each source was compiled.
function(fairlead_hardening_test)
  if(FAIRLEAD_HARDENED AND FAIRLEAD_TOOLS)
    add_test(NAME ${FAIRLEAD_TEST_PREFIX}hardening
             COMMAND ${PROJECT_SOURCE_DIR}/scripts/check_hardening.sh ${PROJECT_BINARY_DIR} $<TARGET_FILE:fairlead_command>
                     $<$<TARGET_EXISTS:fairlead_ibverbs>:$<TARGET_FILE:fairlead_ibverbs>>
                     $<$<TARGET_EXISTS:fairlead_amudp>:$<TARGET_FILE:fairlead_amudp>>
             COMMAND_EXPAND_LISTS)
    set_tests_properties(${FAIRLEAD_TEST_PREFIX}hardening PROPERTIES TIMEOUT 60 LABELS install)
  endif()
endfunction()
