// Signatures of receipts as `ssh-keygen -Y` makes and checks them (OpenSSH's PROTOCOL.sshsig): RECEIPT.sig beside the receipt,
// in the namespace "fairway-receipt". The program ssh-keygen does the work; keys and passphrases stay with it.
#pragma once

#include <filesystem>
#include <string>

namespace fairway::app {

std::filesystem::path signature_of(const std::filesystem::path& file);

// InputError where ssh-keygen is not installed or does not take the key.
void sign_file(const std::filesystem::path& file, const std::filesystem::path& key);

// Who of `signers` (lines "NAME KEY" as in ~/.ssh/allowed_signers) signed the file. InputError naming what is missing;
// WorkError when the signature is not of these bytes or not of one of them.
std::string signer_of(const std::filesystem::path& file, const std::filesystem::path& signers);

}  // namespace fairway::app
