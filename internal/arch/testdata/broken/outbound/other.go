package outbound

var other = 1 // changed in another file

func elsewhere(*int) {}
