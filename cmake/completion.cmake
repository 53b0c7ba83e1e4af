# SPDX-License-Identifier: BSD-3-Clause
# What shells read to complete commands of the tool: the tool itself prints it. Like its manual pages
# it cannot be had from a program that does not run here.
if(TARGET tutti_tool AND NOT TUTTI_SANITIZE AND NOT CMAKE_CROSSCOMPILING)
	set(tutti_completion_dir ${PROJECT_BINARY_DIR}/completion)
	set(tutti_completions)
	function(tutti_completion shell file folder)
		set(path ${tutti_completion_dir}/${file})
		# Not VERBATIM, which would hand the > on as an argument.
		add_custom_command(OUTPUT ${path}
			COMMAND ${CMAKE_COMMAND} -E make_directory ${tutti_completion_dir}
			COMMAND $<TARGET_FILE:tutti_tool> completion ${shell} > ${path}
			DEPENDS tutti_tool
			COMMENT "Completion for ${shell}")
		install(FILES ${path} DESTINATION ${CMAKE_INSTALL_DATADIR}/${folder})
		set(tutti_completions ${tutti_completions} ${path} PARENT_SCOPE)
	endfunction()
	tutti_completion(bash tutti bash-completion/completions)
	tutti_completion(zsh _tutti zsh/site-functions)
	tutti_completion(fish tutti.fish fish/vendor_completions.d)
	add_custom_target(tutti_completion ALL DEPENDS ${tutti_completions})
endif()
