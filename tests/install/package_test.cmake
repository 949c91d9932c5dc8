# Installs BUILD_FOLDER below WORK_FOLDER, moves the tree, and builds and runs the consumer there. The consumer finds
# the library by find_package and by pkg-config, also in C. The move shows that no installed file contains its first
# path.
#   cmake -D BUILD_FOLDER=... -D WORK_FOLDER=... -D COMPILER=... -D C_COMPILER=... -D FLAGS=... -P package_test.cmake
function(run)
  execute_process(COMMAND ${ARGV} RESULT_VARIABLE status OUTPUT_VARIABLE output ERROR_VARIABLE output)
  if(NOT status EQUAL 0)
    string(JOIN " " command ${ARGV})
    message(FATAL_ERROR "${command}: ${status}\n${output}")
  endif()
  set(output "${output}" PARENT_SCOPE)
endfunction()

function(run_consumer program)
  run(${CMAKE_COMMAND} -E env LD_LIBRARY_PATH=${library_folder} ${program})
  if(NOT output STREQUAL "canceled\n")
    message(FATAL_ERROR "${program} printed '${output}' instead of 'canceled'")
  endif()
endfunction()

file(REMOVE_RECURSE ${WORK_FOLDER})
run(${CMAKE_COMMAND} --install ${BUILD_FOLDER} --prefix ${WORK_FOLDER}/first)
file(RENAME ${WORK_FOLDER}/first ${WORK_FOLDER}/prefix)
set(prefix ${WORK_FOLDER}/prefix)

file(GLOB_RECURSE texts ${prefix}/*.cmake ${prefix}/*.pc ${prefix}/*.hpp)
foreach(text IN LISTS texts)
  file(READ ${text} content)
  foreach(path IN ITEMS ${BUILD_FOLDER} ${WORK_FOLDER})
    string(FIND "${content}" ${path} position)
    if(NOT position EQUAL -1)
      message(FATAL_ERROR "${text} holds the path ${path}")
    endif()
  endforeach()
endforeach()

file(GLOB_RECURSE pc ${prefix}/*fairlead.pc)
get_filename_component(pc_folder ${pc} DIRECTORY)
get_filename_component(library_folder ${pc_folder} DIRECTORY)
separate_arguments(flags UNIX_COMMAND "${FLAGS}")

run(${CMAKE_COMMAND} -S ${CMAKE_CURRENT_LIST_DIR} -B ${WORK_FOLDER}/consumer -G Ninja -D CMAKE_PREFIX_PATH=${prefix}
    -D CMAKE_CXX_COMPILER=${COMPILER} -D CMAKE_CXX_FLAGS=${FLAGS})
run(${CMAKE_COMMAND} --build ${WORK_FOLDER}/consumer)
run_consumer(${WORK_FOLDER}/consumer/consumer)

set(ENV{PKG_CONFIG_PATH} ${pc_folder})
run(pkg-config --cflags --libs fairlead)
separate_arguments(found UNIX_COMMAND "${output}")
run(${COMPILER} -std=c++23 ${flags} ${CMAKE_CURRENT_LIST_DIR}/consumer.cpp -o ${WORK_FOLDER}/by_pkg_config ${found})
run_consumer(${WORK_FOLDER}/by_pkg_config)

# A C program. With sanitizers the C++ compiler must link it.
run(pkg-config --cflags fairlead)
separate_arguments(found_headers UNIX_COMMAND "${output}")
run(${C_COMPILER} -std=c11 -pedantic -Werror ${flags} -c ${CMAKE_CURRENT_LIST_DIR}/consumer.c -o ${WORK_FOLDER}/consumer.o
    ${found_headers})
set(linker ${C_COMPILER})
if(flags)
  set(linker ${COMPILER})
endif()
run(${linker} ${flags} ${WORK_FOLDER}/consumer.o -o ${WORK_FOLDER}/by_pkg_config_in_c ${found})
run_consumer(${WORK_FOLDER}/by_pkg_config_in_c)

# A program that uses Motr's network interface, if that is installed.
if(EXISTS ${pc_folder}/motr_net.pc)
  run(pkg-config --cflags motr_net)
  separate_arguments(found_headers UNIX_COMMAND "${output}")
  run(pkg-config --libs motr_net)
  separate_arguments(motr UNIX_COMMAND "${output}")
  run(${C_COMPILER} -std=gnu11 ${flags} -c ${CMAKE_CURRENT_LIST_DIR}/../../doors/motr_net/tests/ping.c -o ${WORK_FOLDER}/ping.o
      ${found_headers})
  run(${linker} ${flags} ${WORK_FOLDER}/ping.o -o ${WORK_FOLDER}/ping ${motr})
  run(${CMAKE_COMMAND} -E env LD_LIBRARY_PATH=${library_folder} ${WORK_FOLDER}/ping)
endif()

if(EXISTS ${prefix}/bin/fairlead)
  run(${prefix}/bin/fairlead --help)
endif()
message(STATUS "installed, found and used by find_package and by pkg-config")
