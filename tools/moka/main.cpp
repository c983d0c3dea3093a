#include "command.h"

int main(int argc, char** argv) { return moka::cli::run(argc, argv); }
