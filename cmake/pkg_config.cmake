# NAME.pc from cmake/NAME.pc.in. The prefix is told relative to the file itself, so that an installed tree may be moved.
function(fairlead_pkg_config name)
  file(RELATIVE_PATH FAIRLEAD_PC_PREFIX /${CMAKE_INSTALL_LIBDIR}/pkgconfig /)
  configure_file(${PROJECT_SOURCE_DIR}/cmake/${name}.pc.in ${name}.pc @ONLY)
  install(FILES ${PROJECT_BINARY_DIR}/${name}.pc DESTINATION ${CMAKE_INSTALL_LIBDIR}/pkgconfig)
endfunction()
