// The standard streams. What is asked for goes to standard output, and losing any of it is an error; what is told by the way
// goes to standard error, and is dropped where that cannot be written: a full disk behind a log must not end hours of work.
#pragma once

#include <string>
#include <string_view>

namespace fairway {

// Called once, first. Descriptors 0 to 2 that were closed are taken, so that no file opened later gets them and the text meant
// for a stream; using them fails. Writing to a closed pipe or past a limit of the file size fails instead of ending the
// process.
void guard_standard_streams();

// Control characters but line ends and tabs as \\x1b and the like: names and texts of others must not steer the terminal.
std::string printable(std::string_view text);

void print_out(std::string_view text);           // written out at once; WorkError when any of it is lost
void print_err(std::string_view text) noexcept;  // dropped when it cannot be written

// What others put into standard output is written too; else WorkError.
void require_output_written();

}  // namespace fairway
