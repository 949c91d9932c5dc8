# Each tests/fuzz/NAME_fuzz.cpp defines LLVMFuzzerTestOneInput. In the fuzz build it becomes a libFuzzer program NAME_fuzz;
# in all others NAME_replay: a test that feeds it the corpus and a fixed number of inputs made from a seed.
option(FAIRLEAD_FUZZERS "build libFuzzer programs (clang; preset fuzz)" OFF)
set(FAIRLEAD_REPLAY_INPUTS 20000 CACHE STRING "made inputs per fuzz target and test run")

function(fairlead_fuzzers folder)
  file(GLOB sources CONFIGURE_DEPENDS ${PROJECT_SOURCE_DIR}/${folder}/*_fuzz.cpp)
  foreach(source IN LISTS sources)
    get_filename_component(target ${source} NAME_WE)
    string(REGEX REPLACE "_fuzz$" "" name ${target})
    if(FAIRLEAD_FUZZERS)
      add_executable(${target} ${source})
      target_link_options(${target} PRIVATE -fsanitize=fuzzer)
    else()
      set(target ${name}_replay)
      add_executable(${target} ${source} ${folder}/replay_main.cpp)
      add_test(NAME ${FAIRLEAD_TEST_PREFIX}fuzz.${name}
               COMMAND ${target} --inputs ${FAIRLEAD_REPLAY_INPUTS} --corpus ${PROJECT_SOURCE_DIR}/${folder}/corpus/${name})
      set_tests_properties(${FAIRLEAD_TEST_PREFIX}fuzz.${name} PROPERTIES TIMEOUT 120 LABELS fuzz)
    endif()
    target_link_libraries(${target} PRIVATE fairlead fairlead_settings fmt::fmt Boost::headers Threads::Threads)
  endforeach()
endfunction()
