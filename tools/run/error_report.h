// How the program says that it failed: on stderr, and under --json as an object on stdout.
#pragma once

#include <string>
#include <vector>

namespace mckpt::impl {

class Error;
struct GlobalFlags;

// The flags that decide how an error is printed, read without a parser because the parser may be what failed.
GlobalFlags flags_for_errors(const std::vector<std::string>& args);

// An error of this process. If every rank has the error, rank 0 alone reports it.
void report_error(const GlobalFlags& flags, Error e);
void report_out_of_memory(const GlobalFlags& flags);
// That another rank is lost.
void report_lost_rank(const GlobalFlags& flags, Error e);

}  // namespace mckpt::impl
