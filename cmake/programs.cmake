# Tests, benchmarks and the command. Each finds its sources by name; a new file needs no line here.
include(GoogleTest)

# Sanitizer builds start the test program of a module once; other programs start once per test, for a name and a time.
option(FAIRLEAD_TEST_WHOLE_PROGRAMS "one ctest test per test program" OFF)
set(FAIRLEAD_TEST_SKIP "" CACHE STRING "modules whose tests are not built, also doors, examples, fuzz and install")
set(FAIRLEAD_TEST_PREFIX "" CACHE STRING "put before the name of every test, tells builds apart in one run")

# Adds the test program of a module, or of a door, unless FAIRLEAD_TEST_SKIP names `label`. Its libraries follow the sources.
function(fairlead_module_test name label)
  cmake_parse_arguments(PARSE_ARGV 2 module "" "" "SOURCES;LIBRARIES")
  if(module_SOURCES AND NOT label IN_LIST FAIRLEAD_TEST_SKIP)
    fairlead_test_program(${name} ${label} ${module_SOURCES})
    target_link_libraries(${name} PRIVATE ${module_LIBRARIES})
  endif()
endfunction()

# main() of the test programs, which knows what may be skipped.
function(fairlead_test_main folder)
  file(GLOB sources CONFIGURE_DEPENDS ${PROJECT_SOURCE_DIR}/${folder}/*.cpp)
  add_library(fairlead_test_main OBJECT ${sources})
  target_link_libraries(fairlead_test_main PRIVATE fairlead_settings fmt::fmt GTest::gtest)
  target_compile_definitions(fairlead_test_main PRIVATE FAIRLEAD_SOURCE_FOLDER="${PROJECT_SOURCE_DIR}")
  target_compile_options(fairlead_test_main PRIVATE -O0)
  fairlead_group(fairlead_test_main)
endfunction()

# Tests without memory replace the operators new and delete of their program; a sanitizer has its own.
set(FAIRLEAD_TEST_OWN_MEMORY "(without|failing)_memory_test(\\.cpp)?$")

# Each of these tests keeps more processes busy than there are processors: they begin first, one at a time.
set(FAIRLEAD_TEST_MANY_PROCESSES "HostCluster.*:*/Replaced*:ReplacedFairleadd.Neither*:ReplacedSealed.*:Kill.*")

function(fairlead_test_program name label)
  set(sources ${ARGN})
  if(FAIRLEAD_TEST_WHOLE_PROGRAMS)
    list(FILTER sources EXCLUDE REGEX "${FAIRLEAD_TEST_OWN_MEMORY}")
  endif()
  add_executable(${name} ${sources})
  target_link_libraries(${name} PRIVATE fairlead fairlead_settings fmt::fmt Boost::headers PkgConfig::isal
                        fairlead_test_main GTest::gmock Threads::Threads nlohmann_json::nlohmann_json)
  target_compile_definitions(${name} PRIVATE FAIRLEAD_SOURCE_FOLDER="${PROJECT_SOURCE_DIR}")
  # Test sources compile up to four times as fast so; what they test is in the library. But the queue's tests are mostly
  # its templates, and the link's have a world of their own to compute.
  if(label STREQUAL link)
    target_compile_options(${name} PRIVATE -O1 -fno-sanitize=undefined)  # a third of its time under clang
  elseif(NOT label STREQUAL queue)
    target_compile_options(${name} PRIVATE -O0 -U_FORTIFY_SOURCE)  # which wants an optimised build
    fairlead_precompile(${name} tests <gmock/gmock.h> <gtest/gtest.h>)
  endif()
  fairlead_group(${name})
  # Tests of whole programs, of which some take long, begin first; the short ones of the modules fill the end. Failing
  # calls are mostly waited for: one test at a time, beside others that compute.
  set(cost 0)
  set(lock "")
  if(label MATCHES "^(sim|tests)$")
    set(cost 1)
  endif()
  if(name STREQUAL failing_calls_test)
    set(lock RESOURCE_LOCK ${name})
  endif()
  set(properties TIMEOUT 120 LABELS ${label})
  if(FAIRLEAD_TEST_WHOLE_PROGRAMS AND cost EQUAL 0)
    add_test(NAME ${FAIRLEAD_TEST_PREFIX}${name} COMMAND ${name})
    set_tests_properties(${FAIRLEAD_TEST_PREFIX}${name} PROPERTIES TIMEOUT 600 LABELS ${label} ENVIRONMENT GTEST_BRIEF=1)
  else()
    gtest_discover_tests(${name} DISCOVERY_MODE PRE_TEST TEST_PREFIX "${FAIRLEAD_TEST_PREFIX}"
                         TEST_FILTER "*-${FAIRLEAD_TEST_MANY_PROCESSES}" PROPERTIES ${properties} COST ${cost} ${lock})
    if(name STREQUAL whole_test)
      gtest_discover_tests(${name} DISCOVERY_MODE PRE_TEST TEST_PREFIX "${FAIRLEAD_TEST_PREFIX}"
                           TEST_FILTER "${FAIRLEAD_TEST_MANY_PROCESSES}"
                           PROPERTIES ${properties} COST 3 PROCESSORS 3 RESOURCE_LOCK many_processes)
    endif()
  endif()
endfunction()

# ./dev test makes this build while tests of the release build run (scripts/test.sh): its tests wait for the build, and
# then begin first. Without such a build as a test, nothing waits.
function(fairlead_tests_wait_for_build)
  get_property(tests DIRECTORY PROPERTY TESTS)
  if(FAIRLEAD_TEST_PREFIX AND tests)
    set_tests_properties(${tests} PROPERTIES FIXTURES_REQUIRED ${FAIRLEAD_TEST_PREFIX}build COST 2)
  endif()
endfunction()

function(fairlead_module_tests)
  file(GLOB folders CONFIGURE_DEPENDS ${PROJECT_SOURCE_DIR}/src/*)
  foreach(folder IN LISTS folders)
    file(GLOB sources CONFIGURE_DEPENDS ${folder}/*_test.cpp)
    get_filename_component(name ${folder} NAME)
    fairlead_module_test(${name}_test ${name} SOURCES ${sources})
  endforeach()
endfunction()

# The *_test.cpp of a folder make up the test program `program`, but for those named after it: they have functions of the
# C or C++ library of their own, and each is a program. The folder's other sources are shared by all of them.
function(fairlead_tests folder program)
  file(GLOB sources CONFIGURE_DEPENDS ${PROJECT_SOURCE_DIR}/${folder}/*.cpp)
  set(shared ${sources})
  list(FILTER sources INCLUDE REGEX "_test\\.cpp$")
  list(FILTER shared EXCLUDE REGEX "(_test|/main)\\.cpp$")
  if(shared)
    add_library(fairlead_${folder}_shared OBJECT ${shared})
    target_link_libraries(fairlead_${folder}_shared PRIVATE fairlead_settings fmt::fmt Boost::headers GTest::gmock
                          nlohmann_json::nlohmann_json)
    target_compile_options(fairlead_${folder}_shared PRIVATE $<$<CONFIG:Release>:-O1>)
    fairlead_precompile(fairlead_${folder}_shared shared)
    fairlead_group(fairlead_${folder}_shared)
  endif()
  set(apart ${ARGN})
  if(FAIRLEAD_TEST_WHOLE_PROGRAMS)
    list(FILTER apart EXCLUDE REGEX "${FAIRLEAD_TEST_OWN_MEMORY}")
  endif()
  foreach(name IN LISTS apart)
    list(REMOVE_ITEM sources ${PROJECT_SOURCE_DIR}/${folder}/${name}.cpp)
    fairlead_test_program(${name} ${folder} ${PROJECT_SOURCE_DIR}/${folder}/${name}.cpp)
  endforeach()
  fairlead_test_program(${program} ${folder} ${sources})
  set_target_properties(${program} PROPERTIES UNITY_BUILD_BATCH_SIZE 10)  # so that all processors have some
  foreach(name IN LISTS program apart)
    if(shared)
      target_link_libraries(${name} PRIVATE fairlead_${folder}_shared fairlead_process)
    endif()
    target_compile_definitions(${name} PRIVATE FAIRLEAD_COMMAND="$<TARGET_FILE:fairlead_command>")
    add_dependencies(${name} fairlead_command fairleadd)
  endforeach()
endfunction()

# A test program of all sources of a folder, with functions of the C library under their own names.
function(fairlead_interposing_test folder name)
  file(GLOB sources CONFIGURE_DEPENDS ${PROJECT_SOURCE_DIR}/${folder}/*.cpp)
  fairlead_test_program(${name} tests ${sources})
  set_target_properties(${name} PROPERTIES ENABLE_EXPORTS ON)  # who was refused, by name
endfunction()

# Code of the modules that is compiled once more, with other words than the processor's (tests/weak_memory).
function(fairlead_weak_memory_test folder name)
  file(GLOB sources CONFIGURE_DEPENDS ${PROJECT_SOURCE_DIR}/${folder}/*.cpp)
  foreach(checked IN LISTS ARGN)
    list(APPEND sources ${PROJECT_SOURCE_DIR}/src/${checked}.cpp)
  endforeach()
  add_executable(${name} ${sources})
  target_include_directories(${name} BEFORE PRIVATE ${PROJECT_SOURCE_DIR}/${folder}/instead)
  target_link_libraries(${name} PRIVATE fairlead_settings fmt::fmt fairlead_test_main GTest::gtest)
  target_compile_options(${name} PRIVATE $<$<CONFIG:Release>:-O1>)
  fairlead_group(${name})
  gtest_discover_tests(${name} DISCOVERY_MODE PRE_TEST PROPERTIES TIMEOUT 120 LABELS tests)
endfunction()

# The conformance tests of src/net as a program of their own, for builds without the tests of whole programs.
option(FAIRLEAD_TEST_CONFORMANCE "build conformance_test, which is a part of whole_test, too" OFF)
function(fairlead_conformance_test folder)
  file(GLOB sources CONFIGURE_DEPENDS ${PROJECT_SOURCE_DIR}/${folder}/net_*conformance_test.cpp)
  fairlead_test_program(conformance_test net ${sources} ${PROJECT_SOURCE_DIR}/${folder}/net_pair.cpp)
endfunction()

# The simulator's tests of src/net as a program of their own, for the same builds. They have one thread.
function(fairlead_net_simulation_test folder)
  file(GLOB sources CONFIGURE_DEPENDS ${PROJECT_SOURCE_DIR}/${folder}/net_*.cpp)
  foreach(part IN LISTS ARGN)
    list(APPEND sources ${PROJECT_SOURCE_DIR}/${folder}/${part}.cpp)
  endforeach()
  fairlead_test_program(net_simulation_test net ${sources})
  target_compile_options(net_simulation_test PRIVATE $<$<CONFIG:Release>:-O1>)
endfunction()

# The simulator as a program of its own; its parts are those that the tests of the folder share.
function(fairlead_simulator folder)
  add_executable(fairlead-sim ${folder}/main.cpp)
  target_link_libraries(fairlead-sim PRIVATE fairlead_${folder}_shared fairlead fairlead_settings fmt::fmt Boost::headers
                        PkgConfig::isal CLI11::CLI11 nlohmann_json::nlohmann_json Threads::Threads)
  target_compile_options(fairlead-sim PRIVATE $<$<CONFIG:Release>:-O1>)
endfunction()

# Each *_bench.cpp of a folder is a benchmark program of its own.
function(fairlead_benchmarks folder)
  file(GLOB sources CONFIGURE_DEPENDS ${PROJECT_SOURCE_DIR}/${folder}/*_bench.cpp)
  foreach(source IN LISTS sources)
    get_filename_component(name ${source} NAME_WE)
    add_executable(${name} ${source})
    target_link_libraries(${name} PRIVATE fairlead fairlead_settings fmt::fmt Boost::headers CLI11::CLI11
                          nlohmann_json::nlohmann_json Threads::Threads)
    fairlead_precompile(${name} benches <CLI/CLI.hpp> <nlohmann/json.hpp>)
  endforeach()
  target_link_libraries(queue_bench PRIVATE ck)  # a rival
  target_link_libraries(peers_bench PRIVATE fairlead_process)
  target_link_libraries(seal_bench PRIVATE ssl crypto)  # rivals, too
endfunction()

# What starts other programs: of the command, and of the tests and benchmarks that do it, too.
function(fairlead_process_library folder)
  file(GLOB sources CONFIGURE_DEPENDS ${PROJECT_SOURCE_DIR}/${folder}/*.cpp)
  list(FILTER sources EXCLUDE REGEX "_test\\.cpp$")
  add_library(fairlead_process STATIC ${sources})
  target_link_libraries(fairlead_process PUBLIC fairlead fairlead_settings fmt::fmt)
  target_compile_options(fairlead_process PRIVATE $<$<CONFIG:Release>:-O1>)
  fairlead_group(fairlead_process)
endfunction()

# tools/*.cpp and tools/*/*.cpp make up the one command `fairlead`; all but its main() is linked to the tests beside the
# sources as well.
function(fairlead_programs folder)
  file(GLOB sources CONFIGURE_DEPENDS ${PROJECT_SOURCE_DIR}/${folder}/*.cpp ${PROJECT_SOURCE_DIR}/${folder}/*/*.cpp)
  list(FILTER sources EXCLUDE REGEX "_test\\.cpp$")
  list(FILTER sources EXCLUDE REGEX "/${folder}/(main|process/[^/]+)\\.cpp$")
  # Half of the code that is compiled here comes from the headers of CLI11 and nlohmann-json. The files that use them are
  # together in the first group, so that it is compiled once.
  foreach(source IN LISTS sources)
    file(STRINGS ${source} uses REGEX "CLI::|Json|nlohmann" LIMIT_COUNT 1)
    if(uses)
      list(APPEND together ${source})
    endif()
  endforeach()
  list(REMOVE_ITEM sources ${together})
  list(PREPEND sources ${together})
  # What a page of `fairlead perf --report` is made of, beside its figures.
  foreach(part PAGE_STYLE:${folder}/perf/page.css PAGE_SCRIPT:${folder}/perf/page.js PLOT_STYLE:third_party/uplot/uPlot.min.css
               PLOT_SCRIPT:third_party/uplot/uPlot.iife.min.js PLOT_LICENSE:third_party/uplot/LICENSE)
    string(REPLACE ":" ";" part ${part})
    list(GET part 1 file)
    list(GET part 0 part)
    file(READ ${PROJECT_SOURCE_DIR}/${file} ${part})
    set_property(DIRECTORY APPEND PROPERTY CMAKE_CONFIGURE_DEPENDS ${PROJECT_SOURCE_DIR}/${file})
  endforeach()
  configure_file(${PROJECT_SOURCE_DIR}/${folder}/perf/page.cpp.in ${PROJECT_BINARY_DIR}/perf_page.cpp @ONLY)
  list(APPEND sources ${PROJECT_BINARY_DIR}/perf_page.cpp)
  add_library(fairlead_tools OBJECT ${sources})
  target_link_libraries(fairlead_tools PUBLIC fairlead_process fairlead fairlead_settings fmt::fmt CLI11::CLI11
                        nlohmann_json::nlohmann_json Threads::Threads)
  target_compile_definitions(fairlead_tools PRIVATE FAIRLEAD_VERSION="${PROJECT_VERSION}"
                             FAIRLEAD_IBVERBS_FOLDER="${FAIRLEAD_IBVERBS_FOLDER}")
  target_compile_options(fairlead_tools PRIVATE $<$<CONFIG:Release>:-O1>)  # two thirds of the time; the work is in the library
  fairlead_precompile(fairlead_tools tools <CLI/CLI.hpp> <nlohmann/json.hpp>)
  fairlead_group(fairlead_tools)
  add_executable(fairlead_command ${PROJECT_SOURCE_DIR}/${folder}/main.cpp)
  set_target_properties(fairlead_command PROPERTIES OUTPUT_NAME fairlead)
  target_link_libraries(fairlead_command PRIVATE fairlead_tools)
  target_compile_options(fairlead_command PRIVATE $<$<CONFIG:Release>:-O1>)
endfunction()

# The host engine as a program.
function(fairlead_daemon folder)
  file(GLOB sources CONFIGURE_DEPENDS ${PROJECT_SOURCE_DIR}/${folder}/*.cpp)
  add_executable(fairleadd ${sources})
  target_link_libraries(fairleadd PRIVATE fairlead fairlead_settings fmt::fmt Boost::headers CLI11::CLI11 Threads::Threads)
  target_compile_definitions(fairleadd PRIVATE FAIRLEAD_VERSION="${PROJECT_VERSION}")
  target_compile_options(fairleadd PRIVATE $<$<CONFIG:Release>:-O1>)
endfunction()

# The pages' links, sentences and names of tests; the second and further builds have the same pages.
function(fairlead_page_tests folder)
  if(NOT FAIRLEAD_TEST_PREFIX)
    foreach(name links sentences named_tests)
      add_test(NAME pages.${name} COMMAND python3 ${PROJECT_SOURCE_DIR}/${folder}/${name}.py)
      set_tests_properties(pages.${name} PROPERTIES TIMEOUT 60 LABELS tests ENVIRONMENT PYTHONDONTWRITEBYTECODE=1)
    endforeach()
  endif()
endfunction()

function(fairlead_program_tests folder)
  file(GLOB sources CONFIGURE_DEPENDS ${PROJECT_SOURCE_DIR}/${folder}/*_test.cpp
       ${PROJECT_SOURCE_DIR}/${folder}/*/*_test.cpp)
  if(sources)
    fairlead_test_program(${folder}_test ${folder} ${sources})
    target_link_libraries(${folder}_test PRIVATE fairlead_tools)
  endif()
endfunction()

# Each *.cpp and *.c of a folder is a program of its own that uses the library as its users do; run as a test. hello.c is
# called hello_c. C is C11, and nothing but that.
function(fairlead_examples folder)
  file(GLOB sources CONFIGURE_DEPENDS ${PROJECT_SOURCE_DIR}/${folder}/*.cpp ${PROJECT_SOURCE_DIR}/${folder}/*.c)
  foreach(source IN LISTS sources)
    get_filename_component(name ${source} NAME_WE)
    if(source MATCHES "\\.c$")
      string(APPEND name _c)
    endif()
    # Debian 12's Boost.Asio has coroutines with GCC alone.
    if(name STREQUAL asio AND NOT CMAKE_CXX_COMPILER_ID STREQUAL GNU)
      continue()
    endif()
    add_executable(example_${name} ${source})
    target_link_libraries(example_${name} PRIVATE fairlead::fairlead)
    if(source MATCHES "\\.c$")
      target_compile_options(example_${name} PRIVATE -Wall -Wextra -pedantic -Werror)
      set_target_properties(example_${name} PROPERTIES LINKER_LANGUAGE CXX C_STANDARD 11 C_EXTENSIONS OFF)
    endif()
    add_test(NAME ${FAIRLEAD_TEST_PREFIX}example_${name} COMMAND example_${name})
    set_tests_properties(${FAIRLEAD_TEST_PREFIX}example_${name} PROPERTIES TIMEOUT 60 LABELS examples)
  endforeach()
endfunction()
