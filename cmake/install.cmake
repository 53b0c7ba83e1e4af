# SPDX-License-Identifier: BSD-3-Clause
# What `cmake --install` puts where. Every path is relative to the prefix, so the
# installed tree may be moved.
include(CMakePackageConfigHelpers)

set(tutti_cmake_dir ${CMAKE_INSTALL_LIBDIR}/cmake/tutti)
set(tutti_pc_dir ${CMAKE_INSTALL_LIBDIR}/pkgconfig)

set_target_properties(tutti_shared PROPERTIES EXPORT_NAME tutti)
set_target_properties(tutti_insight PROPERTIES INSTALL_RPATH $ORIGIN)
install(TARGETS tutti_shared tutti_insight EXPORT tuttiTargets)
install(TARGETS tutti_static EXPORT tuttiStaticTargets)
if(TARGET tutti_malloc)
	install(TARGETS tutti_malloc LIBRARY DESTINATION ${CMAKE_INSTALL_LIBDIR})
endif()
if(TARGET tutti_tool)
	install(TARGETS tutti_tool)
endif()
install(DIRECTORY ${PROJECT_SOURCE_DIR}/include/tutti TYPE INCLUDE FILES_MATCHING PATTERN "*.h")

install(EXPORT tuttiTargets NAMESPACE tutti:: DESTINATION ${tutti_cmake_dir})
install(EXPORT tuttiStaticTargets NAMESPACE tutti:: DESTINATION ${tutti_cmake_dir})
configure_package_config_file(${CMAKE_CURRENT_LIST_DIR}/tuttiConfig.cmake.in
	${PROJECT_BINARY_DIR}/tuttiConfig.cmake INSTALL_DESTINATION ${tutti_cmake_dir})
write_basic_package_version_file(${PROJECT_BINARY_DIR}/tuttiConfigVersion.cmake
	COMPATIBILITY SameMinorVersion)
install(FILES ${PROJECT_BINARY_DIR}/tuttiConfig.cmake
	${PROJECT_BINARY_DIR}/tuttiConfigVersion.cmake DESTINATION ${tutti_cmake_dir})

# From the pkgconfig folder up to the prefix: "../.." or "../../..".
file(RELATIVE_PATH tutti_pc_up /${tutti_pc_dir} /)
string(REGEX REPLACE "/$" "" tutti_pc_up "${tutti_pc_up}")
foreach(file tutti.pc tutti-insight.pc)
	configure_file(${CMAKE_CURRENT_LIST_DIR}/${file}.in ${PROJECT_BINARY_DIR}/${file} @ONLY)
	install(FILES ${PROJECT_BINARY_DIR}/${file} DESTINATION ${tutti_pc_dir})
endforeach()
