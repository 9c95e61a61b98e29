package util // another module: not looked at
