# SPDX-License-Identifier: BSD-3-Clause
# Manual pages: section 3 from the headers, section 1 from what the tool says of itself.
set(tutti_man_dir ${PROJECT_BINARY_DIR}/man)

file(GLOB tutti_headers CONFIGURE_DEPENDS ${PROJECT_SOURCE_DIR}/include/tutti/*.h)
add_custom_command(OUTPUT ${tutti_man_dir}/man3.stamp
	COMMAND ${CMAKE_COMMAND} -E rm -rf ${tutti_man_dir}/man3
	COMMAND ${PROJECT_SOURCE_DIR}/scripts/gen_reference --man ${tutti_man_dir}/man3
	COMMAND ${CMAKE_COMMAND} -E touch ${tutti_man_dir}/man3.stamp
	DEPENDS ${tutti_headers} ${PROJECT_SOURCE_DIR}/scripts/gen_reference
		${PROJECT_SOURCE_DIR}/scripts/reference.awk
		${PROJECT_SOURCE_DIR}/scripts/reference_man.awk
	COMMENT "Manual pages of the library" VERBATIM)
set(tutti_man_stamps ${tutti_man_dir}/man3.stamp)
install(DIRECTORY ${tutti_man_dir}/man3 DESTINATION ${CMAKE_INSTALL_MANDIR})

# A sanitizer may want to be started in a way of its own, and another machine's program
# cannot be.
if(TARGET tutti_tool AND NOT TUTTI_SANITIZE AND NOT CMAKE_CROSSCOMPILING)
	add_custom_command(OUTPUT ${tutti_man_dir}/man1.stamp
		COMMAND ${CMAKE_COMMAND} -E rm -rf ${tutti_man_dir}/man1
		COMMAND ${PROJECT_SOURCE_DIR}/scripts/gen_tool_man $<TARGET_FILE:tutti_tool>
			${tutti_man_dir}/man1
		COMMAND ${CMAKE_COMMAND} -E touch ${tutti_man_dir}/man1.stamp
		DEPENDS tutti_tool ${PROJECT_SOURCE_DIR}/scripts/gen_tool_man
		COMMENT "Manual pages of the tool" VERBATIM)
	list(APPEND tutti_man_stamps ${tutti_man_dir}/man1.stamp)
	install(DIRECTORY ${tutti_man_dir}/man1 DESTINATION ${CMAKE_INSTALL_MANDIR})
endif()
add_custom_target(tutti_man ALL DEPENDS ${tutti_man_stamps})
